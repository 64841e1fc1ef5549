"""
Servers that do the same work, each at its own HTTP interface, with its own defaults.

The programs of the peers are in `served`. DBOS is a library: its program has a bare Starlette.
"""

import asyncio
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from bench import http
from bench.http import Seeded
from bench.load import request
from bench.peers import HERE
from bench.peers.install import npm_package, python_with, version_of
from bench.postgres import new_database, server
from bench.servers import Server, free_port, running
from wfcore import __version__
from wfcore.model.workflow import Language
from wfserver.definitions.read import interpreters

STEPS = 40
SERVED = HERE / "served"
QUIET = {"DO_NOT_TRACK": "1", "RESTATE_DISABLE_TELEMETRY": "true"}
LOOK_S = 0.002

Ask = Callable[[], bytes]
"""The next request of a load."""


class Door(ABC):
    """
    A server that was started. *title*: with versions, and the store if there is a choice.
    *processes*: those whose CPU time is its own, with all below them.
    """

    key = ""

    def __init__(self, title: str, port: int, processes: Sequence[int]) -> None:
        self.title = title
        self.port = port
        self.processes = processes
        self._connection = HTTPConnection("127.0.0.1", port, timeout=60)

    @abstractmethod
    def steps(self, count: int) -> Ask:
        """Start an execution of 1 or `STEPS` light steps; the answer comes when it has ended."""

    @abstractmethod
    def polls(self) -> Ask:
        """Ask for the state of an execution that has ended."""

    @abstractmethod
    def ask(self) -> Callable[[], object]:
        """Begin what waits for a decision. The call made of it decides, and returns at its end."""

    def hang_up(self) -> None:
        """Before a pause, in which the server would."""
        self._connection.close()

    def call(self, method: str, path: str, body: object = None) -> Any:
        """One request on a connection that is kept, answered as JSON."""
        headers = {"Authorization": f"Bearer {self.key}"}
        text = None
        if body is not None:
            text = json.dumps(body)
            headers["Content-Type"] = "application/json"
        self._connection.request(method, path, text, headers)
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status >= 300:
            raise SystemExit(f"{self.title}: {method} {path}: {answer.status} {content!r}")
        return json.loads(content) if content else None


class Wfcore(Door):
    """An execution of steps of the kind data, an approval; without a sandbox, as nothing starts."""

    def __init__(self, found: Server, seeded: Seeded) -> None:
        super().__init__(f"wfcore {__version__}, SQLite", found.port, [found.process.pid])
        self._seeded = seeded
        self.key = seeded.keys[0]

    def steps(self, count: int) -> Ask:
        path = f"{self._executions(f'light-{count}')}?wait=30"
        keys = self._seeded.keys
        return http.rotating([request("POST", path, key, b'{"inputs":{}}') for key in keys])

    def polls(self) -> Ask:
        run = self.call("POST", f"{self._executions('light-1')}?wait=30", {"inputs": {}})
        path = f"/api/v1/executions/{run['executionId']}"
        return http.rotating([request("GET", path, key) for key in self._seeded.keys])

    def ask(self) -> Callable[[], object]:
        run = self.call("POST", self._executions("approval-1"), {"inputs": {}})["executionId"]
        opened = until(lambda: self.call("GET", f"/api/v1/approvals/execution/{run}")["approvals"])

        def decide() -> None:
            self.call("POST", f"/api/v1/approvals/{opened[0]['id']}/approve", {})
            ended = self.call("GET", f"/api/v1/executions/{run}?wait=30")
            assert ended["status"] == "COMPLETED", ended

        return decide

    def _executions(self, workflow: str) -> str:
        return f"/api/v1/workflows/{self._seeded.workflows[workflow]}/executions"


class Restate(Door):
    """A handler whose steps are `ctx.run`, and a workflow that waits for a promise."""

    def steps(self, count: int) -> Ask:
        return lambda: request("POST", "/sums/steps", body=str(count).encode())

    def polls(self) -> Ask:
        key = self._asked()
        self._decide(key)
        return lambda: request("GET", f"/restate/workflow/approval/{key}/output")

    def ask(self) -> Callable[[], object]:
        key = self._asked()
        return lambda: self._decide(key)

    def _asked(self) -> str:
        key = str(time.monotonic_ns())
        self.call("POST", f"/approval/{key}/run/send")
        until(lambda: self.call("POST", f"/approval/{key}/asked"))
        return key

    def _decide(self, key: str) -> None:
        self.call("POST", f"/approval/{key}/approve")
        assert self.call("GET", f"/restate/workflow/approval/{key}/attach") == "yes"


class Dbos(Door):
    """A workflow of steps that are its functions, and one that receives a message."""

    def steps(self, count: int) -> Ask:
        return lambda: request("POST", "/steps", body=str(count).encode())

    def polls(self) -> Ask:
        run = self.call("POST", "/steps", 1)
        return lambda: request("GET", f"/status/{run}")

    def ask(self) -> Callable[[], object]:
        run = self.call("POST", "/ask")

        def decide() -> None:
            self.call("POST", f"/approve/{run}")
            assert self.call("GET", f"/result/{run}") == "yes"

        return decide


def until(look: Callable[[], Any]) -> Any:
    """What *look* finds, once it is anything."""
    while not (found := look()):
        time.sleep(LOOK_S)
    return found


@contextmanager
def opened(folder: Path) -> Iterator[Sequence[Door]]:
    """All of them, wfcore first, installed afresh and started; ended on leaving."""
    with beside_restate(folder, python_service) as found, dbos(folder) as others:
        yield [*found, *others]


@contextmanager
def beside_restate(folder: Path, *services: "Service") -> Iterator[Sequence[Door]]:
    """wfcore, and a server of Restate for each of the *services*."""
    with ExitStack() as stack:
        doors: list[Door] = [stack.enter_context(wfcore(folder / "wfcore"))]
        program = restate_server()
        for made in services:
            service = stack.enter_context(made())
            base = folder / f"restate-{len(doors)}"
            doors.append(stack.enter_context(restate(base, *program, *service)))
        yield doors


@contextmanager
def wfcore(folder: Path) -> Iterator[Door]:
    seeded = http.seed(folder)
    with http.whole(folder) as found:
        yield Wfcore(found, seeded)


def restate_server() -> tuple[Path, str]:
    """The program, and its version."""
    scope, version = npm_package("restate-server", "@restatedev/restate-server")
    (program,) = scope.glob("restate-server-*/bin/restate-server")
    return program, version


Called = tuple[str, int, Server]
"""A service that Restate calls: what it is made with, its port, and its process."""
Service = Callable[[], AbstractContextManager[Called]]


@contextmanager
def python_service() -> Iterator[Called]:
    """The service in Python, in a process of its own."""
    python = python_with("restate-service", "restate-sdk", "hypercorn[uvloop]")
    argv = ["-m", "hypercorn", "-k", "uvloop", "--bind=127.0.0.1:{port}", "with_restate:app"]
    with running(argv, "/health", program=python, PYTHONPATH=str(SERVED)) as found:
        yield f"restate-sdk {version_of(python, 'restate-sdk')}", found.port, found


@contextmanager
def javascript_service() -> Iterator[Called]:
    """The same in JavaScript on Node, which finds its packages beside the program."""
    scope, version = npm_package("restate-sdk", "@restatedev/restate-sdk")
    program, port = scope.parents[1] / "with_restate.mjs", free_port()
    program.write_text((SERVED / program.name).read_text())
    node = interpreters().find(Language.TYPESCRIPT).path or "node"  # the SDK needs a new one
    with running([str(program), "{port}", str(port)], "/", program=node) as found:
        yield f"restate-sdk in JavaScript {version}", port, found


@contextmanager
def restate(base: Path, program: Path, version: str, *service: Any) -> Iterator[Door]:
    """Its server, which calls the *service* (`Called`)."""
    made_with, port, called = service
    admin = free_port()
    ports = {"": free_port(), "ADMIN__": admin, "INGRESS__": "{port}"}
    addresses = [f"RESTATE_{name}BIND_ADDRESS=127.0.0.1:{port}" for name, port in ports.items()]
    begin = [*addresses, str(program), f"--base-dir={base}", "--listen-mode=tcp", "--no-logo"]
    with running(begin, "/restate/health", program="/usr/bin/env", **QUIET) as found:
        uri = f"http://127.0.0.1:{port}"
        Restate("its administration", admin, ()).call("POST", "/deployments", {"uri": uri})
        title = f"Restate {version}, {made_with}"
        yield Restate(title, found.port, [found.process.pid, called.process.pid])


@contextmanager
def dbos(folder: Path) -> Iterator[Sequence[Door]]:
    """The same program twice: on SQLite, its default, and on PostgreSQL."""
    python = python_with("dbos-service", "dbos", "starlette", "uvicorn[standard]")
    version = version_of(python, "dbos")
    argv = [str(SERVED / "with_dbos.py"), "{port}"]
    with server() as made:
        url = asyncio.run(new_database(made))
        assert made.process is not None
        with (
            running(argv, "/health", program=python, DATABASE=f"sqlite:///{folder}/dbos") as small,
            running(argv, "/health", program=python, DATABASE=url) as large,
        ):
            below = [large.process.pid, made.process.pid]
            yield [
                Dbos(f"DBOS {version}, SQLite", small.port, [small.process.pid]),
                Dbos(f"DBOS {version}, PostgreSQL", large.port, below),
            ]
