"""The bundled server with parts of one's own: by keyword, and by installed packages."""

import json
import re
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from adapters_http.app import HttpConfig, create_app
from adapters_runtime.functions import FunctionRunner
from adapters_store import open_store
from wfcore import CodeStep, Definition, Language, Principal
from wfcore.accounts import Visitor
from wfcore.errors import InvalidInput
from wfcore.memory import MemoryFiles
from wfcore.testing.fakes import NotedHints
from wfcore.testing.fakes_running import store_in_memory
from wfcore.usecases.accounts.accounts import ensure_account
from wfcore.usecases.executions.executions import wait_for_rest
from wfcore.usecases.executions.starting import start_execution
from wfcore.usecases.workflows.workflows import apply_workflow
from wfserver.compose import open_system
from wfserver.serving.engine import engine, runner_of
from wfserver.settings.record import Settings, settings_from

EMBEDDING = Path(__file__).parents[2] / "docs" / "embedding.md"
HELLO = Definition("Hello", (CodeStep("greet", Language.COMMAND, command=("greet", "you")),))

CALLED = dict(
    re.findall(
        r"^\| `wfcore\.(\w+)` \|.*?\| `[\w ]+\((.*?)\)` \|", EMBEDDING.read_text(), re.MULTILINE
    )
)
"""The parameters of each entry point, as the documentation says."""
PLUGIN = f"""
from adapters_runtime.functions import FunctionRunner
from adapters_store import Opened, open_store
from adapters_store.sqlite.store import SqliteStore


async def open({CALLED["stores"]}):
    own = await open_store("sqlite:///" + url.partition("://")[2], data_folder, now=now)
    return Opened(own.store, own.counters, own.files, "mine at " + url)


async def open_plain({CALLED["stores"]}):
    return await SqliteStore.open(data_folder / url.partition("://")[2], now=now)


def greet(who):
    return "Hello " + who


def runner({CALLED["runners"]}):
    return FunctionRunner(greet)
"""
ENTRY_POINTS = """
[wfcore.stores]
mine = own_parts:open
plain = own_parts:open_plain

[wfcore.runners]
mine = own_parts:runner
"""


def greet(who: str) -> str:
    return f"Hello {who}"


@pytest.fixture
def installed(tmp_path: Path) -> Mapping[str, str]:
    """The environment of a process in which a package with own parts is installed."""
    site = tmp_path / "site"
    about = site / "own_parts-1.0.dist-info"
    about.mkdir(parents=True)
    (site / "own_parts.py").write_text(PLUGIN)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: own-parts\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
    return MappingProxyType({"PYTHONPATH": str(site), "PATH": "/usr/bin:/bin"})


def command(cwd: Path, env: Mapping[str, str], *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "wfserver", *words],
        cwd=cwd,
        env=dict(env),
        capture_output=True,
        text=True,
        timeout=120,
    )


async def test_every_part_can_be_given(tmp_path: Path) -> None:
    """Store, files, wake-up, runner and login: what is given is what the server has."""
    store, files, hints = store_in_memory(), MemoryFiles(), NotedHints()
    runner = FunctionRunner(greet)

    async def login(scope: object) -> Visitor | None:
        return None

    async with open_system(
        Settings(tmp_path), store=store, files=files, wakeup=hints, runner=runner, login=login
    ) as system:
        services = system.services
        assert (services.store, services.files, services.wakeup) == (store, files, hints)
        assert (system.runner, system.login, system.location) == (runner, login, "MemoryStore")
        ann = Principal(await ensure_account(services, "ann@example.org"))
        flow = await apply_workflow(services, ann.account.id, HELLO)
        started = await start_execution(services, ann, flow.id, {})
        async with engine(system, runner_of(system)) as working:
            run = await wait_for_rest(services, ann, started.execution_id, 60_000)
            working.check()
        assert run.output == "Hello you"
        assert create_app(services, HttpConfig(login=system.login))
    assert not (tmp_path / "wfcore.db").exists()


def test_a_server_serves_what_it_is_given(tmp_path: Path) -> None:
    """`serve.run` with an opened system: own runner, own login, and no isolation that is ours."""
    program = f"""
import sys
from adapters_runtime.functions import FunctionRunner
from wfcore.accounts import Visitor
from wfserver.compose import open_system
from wfserver.serving.serve import run
from wfserver.settings.record import settings_from

async def login(scope):
    known = dict(scope["headers"]).get(b"x-who") == b"ann"
    return Visitor("ann@example.org") if known else None

def greet(who):
    return who

def ready(info):
    print(info.url, info.isolation, type(info.runner).__name__, flush=True)

settings = settings_from({{}}, data={str(tmp_path / "data")!r}, port=0)
run(settings, ready, open_system(settings, runner=FunctionRunner(greet), login=login))
"""
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    timer = threading.Timer(120, process.kill)
    timer.start()
    try:
        assert process.stdout is not None
        url, isolation, runner = process.stdout.readline().split()
        assert (isolation, runner) == ("None", "FunctionRunner")
        asked = urllib.request.Request(f"{url}/api/v1/workflows", headers={"x-who": "ann"})
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(asked, timeout=60)
        assert refused.value.code == 401  # the login named an account that is not there
        refused.value.close()
    finally:
        process.terminate()
        process.communicate(timeout=60)
        timer.cancel()


def test_an_installed_store_is_found_by_its_scheme(
    tmp_path: Path, installed: Mapping[str, str]
) -> None:
    """`--store mine://…` is opened by the package that offers it; what is stored is there again."""
    store = ("--store", f"mine://{tmp_path}/own.db", "--json")
    made = command(tmp_path, installed, *store, "account", "create", "ann@example.org")
    assert made.returncode == 0, made.stderr
    listed = command(tmp_path, installed, *store, "account", "list")
    assert [one["email"] for one in json.loads(listed.stdout)["items"]] == ["ann@example.org"]
    assert (tmp_path / "own.db").exists()
    refused = command(tmp_path, installed, *store, "check")
    assert (refused.returncode, "Traceback" in refused.stderr) == (1, False), refused.stderr


def test_an_installed_package_may_bring_a_store_alone(
    tmp_path: Path, installed: Mapping[str, str]
) -> None:
    """Counters and artifacts are then in the data folder, as those of the bundled store are."""
    plain = ("--data", "data", "--store", "plain://own.db", "--json")
    made = command(tmp_path, installed, *plain, "account", "create", "ann@example.org")
    assert made.returncode == 0, made.stderr
    listed = command(tmp_path, installed, *plain, "account", "list")
    assert [one["email"] for one in json.loads(listed.stdout)["items"]] == ["ann@example.org"]
    assert (tmp_path / "data" / "own.db").exists()
    assert (tmp_path / "data" / "counters.db").exists()


def test_an_installed_runner_is_found_by_its_name(
    tmp_path: Path, installed: Mapping[str, str]
) -> None:
    """`WFCORE_RUNNER=mine` runs steps by the package that offers it."""
    (tmp_path / "hello.yaml").write_text(
        "name: Hello\nsteps:\n- {name: greet, kind: code, language: command, command: [greet, you]}"
    )
    env = {**installed, "WFCORE_RUNNER": "mine"}
    run = command(tmp_path, env, "--json", "run", "hello.yaml")
    assert json.loads(run.stdout)["output"] == "Hello you", run.stderr


async def test_what_nobody_offers_is_said(tmp_path: Path) -> None:
    """Unknown names are errors that say what there is."""
    with pytest.raises(ValueError, match="'mine://x' names no store; use sqlite:///PATH"):
        await open_store("mine://x", tmp_path)
    settings = settings_from({"WFCORE_RUNNER": "mine"}, data=str(tmp_path), store="memory:")
    async with open_system(settings) as system:
        with pytest.raises(InvalidInput, match="WFCORE_RUNNER: no package offers 'mine'"):
            runner_of(system)
