"""
Programs of strangers in fresh environments: the wheel and one extra, on each Python of the machine.

The libraries come from `.wheelhouse`, which `make wheels` fills; nothing is downloaded here. Every
program runs with warnings as errors, as an embedder may have it.
"""

import hashlib
import hmac
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.docs.pages import DOCS, READY
from tests.docs.test_type_checkers import strictly
from tests.proofs.packaging.test_a_stranger import MISTAKES
from tests.support.wheels import ROOT

HOUSE = ROOT / ".wheelhouse"
EXAMPLES = ROOT / "examples"
FOUND = subprocess.run([ROOT / ".ci/versions", "pythons"], check=True, capture_output=True)
PYTHONS = dict(line.split(" ", 1) for line in FOUND.stdout.decode().splitlines())
"""Paths of the Pythons of this machine, by their minor version."""
SECRET = "s3cret"
WITHOUT = """
import asyncio, wfcore as wf
async def opened():
    async with wf.on_sqlite("orders"): pass
try:
    asyncio.run(opened())
except wf.MissingExtra as error:
    print(error)
"""
OWN = """
import pytest
from own_store import open_journal
from wfcore.testing.contracts.keeping import Handles
from wfcore.testing.contracts.units import UnitContract

class TestMine(Handles, UnitContract):
    @pytest.fixture
    async def store(self, tmp_path, clock):
        store = open_journal(tmp_path / "journal", clock.service_now)
        yield store
        await store.close()
"""

SETTINGS = """
[pytest]
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
"""

pytestmark = pytest.mark.skipif(not HOUSE.exists(), reason="make wheels fills .wheelhouse")

Installed = Callable[..., Path]


@pytest.fixture(params=PYTHONS)
def minor(request: pytest.FixtureRequest) -> str:
    """A minor version of Python."""
    return str(request.param)


@pytest.fixture(scope="module")
def installed(release, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The Python of a fresh environment: `installed(minor, extra, *libraries)`, made once."""

    @cache
    def make(minor: str, extra: str, *libraries: str) -> Path:
        folder = tmp_path_factory.mktemp("fresh") / "venv"
        subprocess.run([PYTHONS[minor], "-m", "venv", "--without-pip", folder], check=True)
        wheel = f"{release['whl']}[{extra}]" if extra else str(release["whl"])
        pip = [sys.executable, "-m", "pip", "--python", folder, "--disable-pip-version-check"]
        offline = ["install", "-q", "--no-index", "--find-links", HOUSE, "--no-compile"]
        subprocess.run([*pip, *offline, wheel, *libraries], check=True)
        return folder / "bin" / "python"

    return make


def ran(python: Path, cwd: Path, *words: str | Path) -> str:
    """What a program prints, which must end well without a warning."""
    command = [python, "-W", "error", *words]
    done = subprocess.run(command, cwd=cwd, env=alone(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def alone(**more: str) -> dict[str, str]:
    """The environment variables of a program that sees no file of this tree."""
    own = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    return {**own, **more}


def program(name: str) -> str:
    """The program of the tutorial whose first line names the file *name*."""
    page = (DOCS / "tutorial/use-as-a-library.md").read_text()
    (found,) = re.findall(rf"```python\n(# {re.escape(name)}\n.*?)```", page, re.S)
    return str(found)


def test_the_core_alone_runs_workflows_and_names_its_extras(
    minor: str, installed: Installed, tmp_path: Path
) -> None:
    """Base: rules, workflows in memory, typed mistakes; SQLite is refused with its extra."""
    python = installed(minor, "")
    assert "COMPLETED hello" in ran(python, tmp_path, EXAMPLES / "embed_rules.py")
    assert "COMPLETED" in ran(python, tmp_path, EXAMPLES / "embed_service.py")
    assert ran(python, tmp_path, "-c", MISTAKES) == "refused 8\n"
    assert "[sqlite]" in ran(python, tmp_path, "-c", WITHOUT)


def test_a_durable_program_continues_in_another_process(
    minor: str, installed: Installed, tmp_path: Path
) -> None:
    """`[sqlite]`: one process accepts, another does the work."""
    (tmp_path / "durable.py").write_text(program("durable.py"))
    python = installed(minor, "sqlite", "fastapi", "uvicorn")
    assert ran(python, tmp_path, "durable.py", "accept") == ""
    assert ran(python, tmp_path, "durable.py", "work") == "COMPLETED hello\n"


@contextmanager
def killed(python: Path, cwd: Path) -> Iterator[httpx.Client]:
    """A client of the FastAPI service in *cwd*, which is ended by `kill -9`."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    app = ["-m", "uvicorn", "fastapi_service:app", "--app-dir", EXAMPLES, "--port", str(port)]
    command = [python, "-W", "error", *app]
    environment = alone(REFUNDS_SECRET=SECRET, PYTHONDONTWRITEBYTECODE="1")
    with subprocess.Popen(
        command, cwd=cwd, env=environment, stderr=subprocess.PIPE, text=True
    ) as service:
        try:
            assert service.stderr is not None
            said = next((line for line in service.stderr if READY.search(line)), "it ended")
            assert READY.search(said), said
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
                yield client
        finally:
            service.kill()


def deliver(client: httpx.Client, body: bytes, secret: str = SECRET) -> httpx.Response:
    """The answer to a delivery with one id."""
    signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    headers = {"x-webhook-signature": f"sha256={signature}", "idempotency-key": "order-7"}
    return client.post("/orders", content=body, headers=headers)


def test_a_service_of_ones_own_survives_two_kills(
    minor: str, installed: Installed, tmp_path: Path
) -> None:
    """`[sqlite]` and FastAPI: webhook, kill, approval, kill; nothing is lost or done twice."""
    python = installed(minor, "sqlite", "fastapi", "uvicorn")
    body = json.dumps({"order": "A-7"}).encode()
    with killed(python, tmp_path) as client:
        assert deliver(client, body, "guessed").status_code == 401
        accepted = deliver(client, body)
        assert (accepted.status_code, accepted.json()["replayed"]) == (202, False)
        order = accepted.json()["id"]
        assert client.get(f"/orders/{order}").json()["status"] == "AWAITING_APPROVAL"
    with killed(python, tmp_path) as client:
        assert deliver(client, body).json() == {"id": order, "replayed": True}
        (waiting,) = client.get("/approvals").json()
        assert waiting["message"] == "Refund order A-7?"
        assert client.post(f"/approvals/{waiting['id']}/approve").status_code == 200
        ended = {"status": "COMPLETED", "output": "paid A-7"}
        assert client.get(f"/orders/{order}").json() == ended
    with killed(python, tmp_path) as client:
        assert client.get(f"/orders/{order}").json() == ended
        assert client.get("/approvals").json() == []
        assert client.post(f"/approvals/{waiting['id']}/approve").status_code == 409
    assert (tmp_path / "paid.txt").read_text() == "A-7\n"


def test_the_server_serves(minor: str, installed: Installed, tmp_path: Path) -> None:
    """`[server]`: `wfcore up` with its sample, which answers a key."""
    python = installed(minor, "server")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [python, "-W", "error", "-m", "wfserver", "up", "--port", str(port)]
    with subprocess.Popen(
        command, cwd=tmp_path, env=alone(), stdout=subprocess.PIPE, stderr=-2, text=True
    ) as server:
        try:
            assert server.stdout is not None
            said: list[str] = []
            for line in server.stdout:
                said.append(line)
                if READY.search(line):
                    break
            else:
                raise AssertionError("".join(said))
            key = (tmp_path / "wfcore-data" / "first.key").read_text().strip()
            headers = {"authorization": f"Bearer {key}"}
            url = f"http://127.0.0.1:{port}/api/v1/workflows"
            assert httpx.get(url, headers=headers, timeout=60).json()["items"] != []
        finally:
            server.terminate()
            server.wait()


def test_a_strangers_store_passes_the_contract(
    minor: str, installed: Installed, tmp_path: Path
) -> None:
    """`[testing]`: the store of the documentation, over files, with the wheel's own suite."""
    (tmp_path / "own_store.py").write_text((EXAMPLES / "own_store.py").read_text())
    (tmp_path / "test_mine.py").write_text(OWN)
    (tmp_path / "pytest.ini").write_text(SETTINGS)
    said = ran(installed(minor, "testing"), tmp_path, "-m", "pytest", "-q", "test_mine.py")
    assert re.search(r"^\d\d+ passed", said, re.M), said


def test_type_checkers_are_strict_with_the_wheel(installed: Installed, tmp_path: Path) -> None:
    """mypy and pyright know every type of the programs from what is installed."""
    python = installed(next(iter(PYTHONS)), "sqlite", "fastapi", "uvicorn")
    names = ("embed_rules.py", "embed_service.py", "fastapi_service.py")
    for name in names:
        (tmp_path / name).write_text((EXAMPLES / name).read_text())
    words = ["--strict", "--config-file=", f"--cache-dir={tmp_path}", "--python-executable", python]
    mypy = [sys.executable, "-m", "mypy", *words, *names]
    done = subprocess.run(mypy, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.startswith("Success"), done.stdout
    found: list[Any] = strictly(tmp_path, *names, python=python)
    assert found == []
