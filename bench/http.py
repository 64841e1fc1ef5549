"""The HTTP rows: polls, starts and triggers against the bare endpoint; whole executions."""

import asyncio
import itertools
import json
import resource
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from compileall import compile_dir
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from attrs import frozen

from bench.load import Load, load, request
from bench.servers import Server, running
from wfcore.model.access import Account, Principal, Scope, Tier
from wfcore.model.review import ApprovalStep
from wfcore.model.workflow import CodeStep, DataStep, Definition, DelayStep, Language, Step
from wfcore.time import DurationMs
from wfcore.usecases.accounts import accounts, keys
from wfcore.usecases.services import Services
from wfcore.usecases.webhooks import webhooks
from wfcore.usecases.workflows import workflows
from wfserver.compose import open_system
from wfserver.settings.record import settings_from

_SOURCES = Path(__file__).parents[1] / "src"
STARTS = 5
COMMANDS = 10
LISTED = 20
KEYS = 60
"""Keys to share the load: one key of the largest plan may do 6,000 requests a minute."""


LIGHT_STEPS = 40
LIGHT: Mapping[str, Sequence[Step]] = {
    "light-1": (DataStep("s0", {"sum": "{{ 1 + 2 }}"}),),
    f"light-{LIGHT_STEPS}": tuple(DataStep(f"s{n}", n) for n in range(LIGHT_STEPS)),
    "delay-1": (DelayStep("wait", DurationMs(1)),),
    "approval-1": (ApprovalStep("ask"),),
}
"""By name: one step, many in a row, one that a wake-up must end, and one that asks."""

LARGE = "head -c 1000000 /dev/zero | tr '\\0' x"
"""Its output is a megabyte."""


@frozen
class Seeded:
    """What the requests need to name."""

    keys: Sequence[str]
    workflows: dict[str, str]
    hooks: Sequence[tuple[str, str]]


def seed(data: Path, store: str | None = None) -> Seeded:
    """
    An account of the largest plan with keys, webhooks and workflows of one and three steps, in the
    database *store*, or in a file.
    """
    return asyncio.run(_seed(data, store))


async def _seed(data: Path, store: str | None) -> Seeded:
    async with open_system(settings_from({}, data=str(data), store=store)) as system:
        services = system.services
        account = await accounts.create_account(services, "bench@example.org", Tier.ENTERPRISE)
        issued = [
            await keys.create_key(services, account.id, f"key {n}", Scope.ordinary())
            for n in range(KEYS)
        ]
        made = {
            f"{language}-{count}": await _workflow(services, account, language, count)
            for language in (Language.BASH, Language.PYTHON)
            for count in (1, 3)
        }
        for name, steps in LIGHT.items():
            light = Definition(name, tuple(steps), ())
            made[name] = (await workflows.apply_workflow(services, account.id, light)).id
        nap = Definition("nap", (CodeStep("s0", Language.BASH, "sleep 60"),), ())
        made["nap"] = (await workflows.apply_workflow(services, account.id, nap)).id
        large = Definition("large", (CodeStep("s0", Language.BASH, LARGE),), ())
        made["large"] = (await workflows.apply_workflow(services, account.id, large)).id
        hooks = []
        for one in issued:
            new = webhooks.NewWebhook(made["bash-1"], "hook", one.key.id)
            hook = await webhooks.create_webhook(services, Principal(account), new)
            hooks.append((hook.id, one.text))
    return Seeded([one.text for one in issued], made, hooks)


async def _workflow(services: Services, account: Account, language: Language, count: int) -> str:
    source = ":" if language is Language.BASH else "pass"
    steps = tuple(CodeStep(f"s{n}", language, source) for n in range(count))
    definition = Definition(f"{language}-{count}", steps, ())
    return (await workflows.apply_workflow(services, account.id, definition)).id


@contextmanager
def bare() -> Iterator[Server]:
    with running(["-m", "bench.bare", "{port}"], "/") as server:
        yield server


@contextmanager
def http_alone(data: Path, **env: str) -> Iterator[Server]:
    with running(["-m", "bench.servers", str(data), "{port}"], **env) as server:
        yield server


@contextmanager
def whole(data: Path, path: str = "/healthz", **env: str) -> Iterator[Server]:
    """
    The bundled server, with its bytecode written as an installation writes it, once it answers
    *path*.
    """
    compile_dir(_SOURCES, quiet=1)
    argv = ["-m", "wfserver", "--data", str(data), "serve", "--port", "{port}"]
    with running(argv, path, **env) as server:
        yield server


def readiness_s(data: Path, **env: str) -> float:
    """How long the bundled server takes from its start to its first answer: the middle of some."""
    took = []
    for _ in range(STARTS):
        with whole(data, **env) as server:
            took.append(server.ready_s)
    return median(took)


def again_s(data: Path, seeded: Seeded, **env: str) -> float:
    """How long the bundled server takes to be ready again after kill -9 while a step ran."""
    with whole(data, **env) as server:
        start = f"/api/v1/workflows/{seeded.workflows['nap']}/executions"
        id = call(server, "POST", start, seeded.keys[0], {"inputs": {}})["executionId"]
        while (
            call(server, "GET", f"/api/v1/executions/{id}", seeded.keys[0])["status"] != "RUNNING"
        ):
            time.sleep(0.05)
        server.process.kill()
        server.process.wait()
    with whole(data, "/readyz", **env) as server:
        return server.ready_s


def command_ms(data: Path, *arguments: str) -> tuple[float, float]:
    """CPU of a command of the command line, and of an interpreter that does nothing: the least."""
    wfcore = "-m", "wfserver", "--data", str(data), *arguments
    turns = [(_cpu_ms(*wfcore), _cpu_ms("-c", "pass")) for _ in range(COMMANDS)]
    command, bare = (min(each) for each in zip(*turns, strict=True))
    return command, bare


def _cpu_ms(*arguments: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1_000


def call(
    server: Server, method: str, path: str, key: str, body: object = None
) -> dict[str, object]:
    """One request, answered as JSON."""
    asked = urllib.request.Request(
        f"http://127.0.0.1:{server.port}{path}",
        method=method,
        data=json.dumps(body).encode() if body is not None else None,
        headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(asked, timeout=30) as answer:
        found: dict[str, object] = json.load(answer)
    return found


def rotating(requests: Sequence[bytes]) -> Callable[[], bytes]:
    """The next of *requests*, for ever."""
    around = itertools.cycle(requests)
    return lambda: next(around)


def polls(server: Server, seeded: Seeded) -> Callable[[], bytes]:
    start = f"/api/v1/workflows/{seeded.workflows['bash-1']}/executions"
    run = call(server, "POST", start, seeded.keys[0], {"inputs": {}})
    path = f"/api/v1/executions/{run['executionId']}"
    return rotating([request("GET", path, key) for key in seeded.keys])


def lists(seeded: Seeded) -> Callable[[], bytes]:
    """Requests for the newest executions of the account, `LISTED` of them."""
    path = f"/api/v1/executions?size={LISTED}"
    return rotating([request("GET", path, key) for key in seeded.keys])


def starts(seeded: Seeded) -> Callable[[], bytes]:
    path = f"/api/v1/workflows/{seeded.workflows['bash-1']}/executions"
    return rotating([request("POST", path, key, b'{"inputs":{}}') for key in seeded.keys])


def triggers(seeded: Seeded) -> Callable[[], bytes]:
    return rotating(
        [
            request("POST", f"/api/webhooks/{hook}/trigger", key, b'{"order":"A-1"}')
            for hook, key in seeded.hooks
        ]
    )


def measured(server: Server, clients: int, seconds: float, ask: Callable[[], bytes]) -> Load:
    """A load that must succeed: refused requests would make the figure a lie."""
    load(server.port, clients, min(seconds, 0.1), ask)
    result = load(server.port, clients, seconds, ask)
    if result.bad:
        raise SystemExit(f"{result.bad} of {result.bad + result.good} requests failed")
    return result


def cpu_ms(server: Server, seconds: float, ask: Callable[[], bytes]) -> float:
    """CPU time of the server in ms for each request over one connection."""
    before = server.cpu_s()
    done = measured(server, 1, seconds, ask)
    return (server.cpu_s() - before) * 1_000 / done.good


@frozen
class Throughput:
    per_second: float
    cpu_ms: float
    p50_ms: float


def executions(
    server: Server, seeded: Seeded, name: str, clients: int, seconds: float
) -> Throughput:
    """Executions completed, by clients that each start one and wait for its end."""
    path = f"/api/v1/workflows/{seeded.workflows[name]}/executions?wait=30"
    requests = [request("POST", path, key, b'{"inputs":{}}') for key in seeded.keys]
    load(server.port, clients, 0.5, rotating(requests))
    cpu, began = server.cpu_s(), time.perf_counter()
    result = load(server.port, clients, seconds, rotating(requests))
    took = time.perf_counter() - began
    used = server.cpu_s() - cpu
    if result.bad:
        raise SystemExit(f"{result.bad} executions were refused")
    return Throughput(result.good / took, used / result.good * 1_000, result.percentile(0.5))
