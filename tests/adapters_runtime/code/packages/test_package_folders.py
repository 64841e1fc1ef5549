"""The folders that keep packages: whole or not there, made once, removed when nobody needs them."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from adapters_runtime.code.packages import environments as module
from adapters_runtime.code.packages.cache import FolderCache
from adapters_runtime.code.packages.environments import PackageEnvironments
from adapters_runtime.code.packages.program import ProgramResult, error_line, passed_on, run
from adapters_runtime.code.packages.sandbox import Sandbox
from wfcore.errors import PackagesUnavailable
from wfcore.model.workflow import Language, Needs
from wfcore.ports.runtime import Environments, LanguageState
from wfcore.testing.contracts.environments import EnvironmentsContract, never_asked
from wfcore.testing.fakes import NotedEnvironments

KEY = "0" * 32
PATH = {"PATH": os.environ["PATH"]}


def python(*packages: str) -> Needs:
    return Needs(Language.PYTHON, packages)


class Notes:
    """An installer that writes a file for each package, and knows no `nowhere`."""

    modules = cure = "site"

    def __init__(self, size: int = 1) -> None:
        self.size, self.runs, self.locks = size, 0, 0

    async def lock(self, sandbox: Sandbox, packages: Collection[str], state: LanguageState) -> str:
        self.locks += 1
        return " ".join(packages)

    async def install(
        self,
        sandbox: Sandbox,
        folder: Path,
        packages: Collection[str],
        lock: str,
        state: LanguageState,
    ) -> None:
        self.runs += 1
        await asyncio.sleep(0)
        (folder / "site").mkdir(parents=True)
        for name in packages:
            if name.startswith("nowhere"):
                raise PackagesUnavailable(f"there is no {name}")
            (folder / "site" / name).write_bytes(b"x" * self.size)

    def fits(self, lock: str, state: LanguageState) -> bool:
        return True

    async def version(self, state: LanguageState) -> str | None:
        return None

    def installed(self, folder: Path) -> list[str]:
        return sorted(os.listdir(folder / "site"))


def grow_old(root: Path, days: float = 365) -> None:
    at = time.time() - days * 86_400
    for about in root.glob("*/about.json"):
        os.utime(about, (at, at))


def folders(root: Path, installer: Notes | None = None) -> PackageEnvironments:
    return PackageEnvironments(root, PATH, installers={Language.PYTHON: installer or Notes()})


class TestFolders(EnvironmentsContract):
    """The contract, with folders. PK-4, PK-6."""

    GOOD, OTHER, IMPOSSIBLE = python("tiny==1.0"), python("tiny==1.1"), python("nowhere==1.0")

    @pytest.fixture
    def environments(self, tmp_path: Path) -> PackageEnvironments:
        return folders(tmp_path)

    def grow_old(self, environments: Environments) -> None:
        assert isinstance(environments, PackageEnvironments)
        grow_old(environments.root)


class TestNoted(TestFolders):
    """The contract, with the fake that other tests use."""

    @pytest.fixture
    def environments(self) -> NotedEnvironments:  # type: ignore[override]
        return NotedEnvironments("nowhere")

    def grow_old(self, environments: Environments) -> None:
        assert isinstance(environments, NotedEnvironments)
        environments.grow_old()


async def test_what_was_resolved_is_not_resolved_again(tmp_path: Path) -> None:
    """Needs without a lock share what is there, whatever the index has by now. PK-4."""
    notes = Notes()
    needs = [await folders(tmp_path, notes).prepare(python("a==1")) for _ in range(2)]
    assert (needs[0], notes.locks) == (needs[1], 1)


async def test_of_many_at_once_one_installs(tmp_path: Path) -> None:
    """Ten callers of two objects wait for one installation. PK-4."""
    notes = Notes()
    both = folders(tmp_path, notes), folders(tmp_path, notes)
    await asyncio.gather(*(both[n % 2].prepare(python("a==1")) for n in range(10)))
    assert notes.runs == 1
    needs = await both[0].prepare(python("a==1"))
    assert sorted(os.listdir(tmp_path)) == [Path(both[0].find(needs) or "").parents[1].name]


MAKE = f"""
import asyncio, os, pathlib, sys
from adapters_runtime.code.packages.cache import FolderCache

async def main(root, ledger):
    cache = FolderCache(pathlib.Path(root))
    async with cache.making("{KEY}") as fresh:
        if fresh is not None:
            with open(ledger, "a") as lines:
                lines.write("made\\n")
            (fresh / "module").write_text("whole")
            print("making", flush=True)
            if sys.argv[3] == "hang":
                await asyncio.sleep(600)
            await asyncio.sleep(0.2)
            cache.complete(fresh, {{}})

asyncio.run(main(*sys.argv[1:3]))
"""


def maker(root: Path, ledger: Path, how: str = "go") -> "subprocess.Popen[str]":
    argv = [sys.executable, "-c", MAKE, str(root), str(ledger), how]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)


def test_of_many_processes_at_once_one_makes_it(tmp_path: Path) -> None:
    """Four processes want the same folder: it is made once, and all end well. PK-4."""
    makers = [maker(tmp_path / "root", tmp_path / "ledger") for _ in range(4)]
    for one in makers:
        one.communicate(timeout=60)
    assert [one.returncode for one in makers] == [0] * 4
    assert (tmp_path / "ledger").read_text() == "made\n"
    assert os.listdir(tmp_path / "root") == [KEY]


async def test_what_a_killed_process_was_making_is_never_found(tmp_path: Path) -> None:
    """After kill -9 in the middle there is nothing, and the next one makes it whole. PK-4."""
    root, ledger = tmp_path / "root", tmp_path / "ledger"
    killed = maker(root, ledger, "hang")
    assert killed.stdout is not None
    assert killed.stdout.readline() == "making\n"
    cache = FolderCache(root)
    assert cache.find(KEY) is None
    assert cache.entries() == []
    waiting = maker(root, ledger)
    killed.send_signal(signal.SIGKILL)
    killed.communicate(timeout=60)
    waiting.communicate(timeout=60)
    assert (waiting.returncode, cache.find(KEY) is None) == (0, False)
    assert os.listdir(root) == [KEY]
    assert ledger.read_text() == "made\nmade\n"


async def test_leftovers_of_the_dead_are_removed_and_of_the_living_kept(tmp_path: Path) -> None:
    """Pruning takes away what nobody is making any more. PK-6."""
    root, ledger = tmp_path / "root", tmp_path / "ledger"
    (root / f".new-{'1' * 32}" / "deep").mkdir(parents=True)
    (root / f".old-{'2' * 32}").mkdir()
    living = maker(root, ledger, "hang")
    assert living.stdout is not None
    assert living.stdout.readline() == "making\n"
    try:
        await folders(root).prune(never_asked)
        assert sorted(os.listdir(root)) == [f".new-{KEY}", f"{KEY}.lock"]
    finally:
        living.kill()
        living.communicate()
    await folders(root).prune(never_asked)
    assert os.listdir(root) == []


async def test_a_cancelled_making_leaves_nothing(tmp_path: Path) -> None:
    """Who is cancelled while the installer runs leaves no folder, no lock and no process. PK-4."""

    class Slow(Notes):
        async def install(
            self,
            sandbox: Sandbox,
            folder: Path,
            packages: Collection[str],
            lock: str,
            state: LanguageState,
        ) -> None:
            script = f"echo $$ > {tmp_path}/pid; sleep 600 & wait"
            await run(("/bin/sh", "-c", script), tmp_path, PATH)

    root = tmp_path / "root"
    making = asyncio.create_task(folders(root, Slow()).prepare(python("a==1")))
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        await asyncio.sleep(0.01)
        assert not making.done()
    making.cancel()
    await asyncio.gather(making, return_exceptions=True)
    assert os.listdir(root) == []
    assert_dead(int((tmp_path / "pid").read_text()))


def assert_dead(session: int) -> None:
    """Nothing of that session runs (what nobody has reaped yet does not run any more)."""
    deadline = time.monotonic() + 60
    while (alive := [one for one in _processes() if one[1:] == (session, True)]) and (
        time.monotonic() < deadline
    ):
        time.sleep(0.01)
    assert not alive


def _processes() -> Iterator[tuple[str, int, bool]]:
    """Every process: its id, its session, whether it is more than a corpse."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, *numbers = stat.read_text().rpartition(")")[2].split()
            yield stat.parent.name, int(numbers[2]), state not in "ZX"


async def test_an_installer_that_never_ends_is_ended(tmp_path: Path) -> None:
    """Over its time it is killed with what it started. PK-3."""
    script = f"echo $$ > {tmp_path}/pid; sleep 600 & wait"
    with pytest.raises(PackagesUnavailable, match="gave up"):
        await run(("/bin/sh", "-c", script), tmp_path, PATH, limit_s=0.3)
    assert_dead(int((tmp_path / "pid").read_text()))


async def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    """An installer that cannot be started is an error, not a defect."""
    with pytest.raises(PackagesUnavailable, match="/nowhere/pip: No such file"):
        await run(("/nowhere/pip",), tmp_path, PATH)
    assert await run(
        ("/bin/sh", "-c", "echo a; echo b >&2; exit 3"), tmp_path, PATH
    ) == ProgramResult(3, "a\nb\n")


async def test_an_environment_is_for_all_to_read(tmp_path: Path) -> None:
    """Whatever the umask: everybody reads, only its owner writes, who can remove it. PK-4."""
    kept = folders(tmp_path)
    before = os.umask(0o077)
    try:
        needs = await kept.prepare(python("a==1", "b==1"))
    finally:
        os.umask(before)
    found = os.walk(kept.find(needs) or "")
    modes = {
        os.stat(os.path.join(path, name)).st_mode & 0o777
        for path, _, names in found
        for name in (".", *names)
    }
    assert modes == {0o755, 0o644}
    shutil.rmtree(Path(kept.find(needs) or "").parents[1])


async def test_what_was_installed_is_on_record(tmp_path: Path) -> None:
    """Beside the modules stands what was asked for and what is there; doctor counts it."""
    kept = folders(tmp_path, Notes(1_000))
    modules = kept.find(await kept.prepare(python("a==1", "b==1"))) or ""
    about = json.loads((Path(modules).parents[1] / "about.json").read_text())
    assert about["packages"] == about["installed"] == ["a==1", "b==1"]
    assert kept.usage() == module.DiskUsage(1, 2_000)


async def test_a_deleted_environment_is_made_again(tmp_path: Path) -> None:
    """Who deletes the folder loses nothing that the next apply would not bring back. PK-5."""
    notes = Notes()
    kept = folders(tmp_path, notes)
    for runs in (1, 2):
        needs = await kept.prepare(python("a==1"))
        found = kept.find(needs)
        assert (notes.runs, found is None) == (runs, False)
        shutil.rmtree(Path(found or "").parents[1])
        assert kept.find(needs) is None


async def test_a_full_or_closed_disk_is_an_error_of_its_own(tmp_path: Path) -> None:
    """Where no folder can be made, apply is told which one. PK-3."""
    (tmp_path / "file").write_text("")
    with pytest.raises(PackagesUnavailable, match="file"):
        await folders(tmp_path / "file").prepare(python("a==1"))


@pytest.mark.parametrize("report", ["[" * 1_000_000, "{", "9" * 9_999])
async def test_a_report_that_cannot_be_read_is_an_error_of_its_own(
    tmp_path: Path, report: str
) -> None:
    """Code of a package may have written it, where builds are allowed. PK-3."""

    class Strange(Notes):
        async def lock(
            self, sandbox: Sandbox, packages: Collection[str], state: LanguageState
        ) -> str:
            return str(json.loads(report))

    with pytest.raises(PackagesUnavailable, match="what was resolved cannot be read"):
        await folders(tmp_path, Strange()).prepare(python("a==1"))


def asking(*needs: Needs) -> Callable[[], Awaitable[Collection[Needs]]]:
    async def in_use() -> Collection[Needs]:
        return needs

    return in_use


async def test_unused_ones_go_after_a_week_or_when_they_are_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The longest idle go first; what was used within the hour stays in any case. PK-6."""
    monkeypatch.setattr(module, "MOST_UNUSED", 150)
    kept = folders(tmp_path, Notes(100))
    needs = [await kept.prepare(python(f"p{n}==1")) for n in range(6)]
    for one, days in zip(needs, (8, 5, 3, 2, 1, 0), strict=True):
        path = Path(kept.find(one) or "").parents[1] / "about.json"
        os.utime(path, (time.time() - days * 86_400,) * 2)
    assert await kept.prune(asking(needs[2])) == 3
    there = [kept.find(one) is not None for one in needs]
    assert there == [False, False, True, False, True, True]


async def test_nothing_goes_while_an_interpreter_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its interpreter nobody can tell which environment a definition means. PK-6."""
    kept = folders(tmp_path)
    await kept.prepare(python("a==1"))
    grow_old(tmp_path)
    blind = PackageEnvironments(tmp_path, {"PATH": "/nowhere"}, installers={})
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert await blind.prune(asking(Needs(Language.JAVASCRIPT, ("x@1.0.0",)))) == 0
    assert await kept.prune(asking()) == 1


SECRETS = "user:hunter2@host.example/simple/TOKEN?key=s3cret"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("ERROR: No matching distribution found", "No matching distribution found"),
        (f"ERROR: 404 for https://{SECRETS} (x)", "404 for https://host.example/… (x)"),
        (f"npm error 404 Not Found - GET 'http://{SECRETS}'", "Not Found - GET 'http://host.example/…'"),
        (f"ERROR: git+ssh://git@{SECRETS}", "git+ssh://host.example/…"),
        ("ERROR: https://user:hun/ter2@host/x", "https://…"),
        ("ERROR: http://[::1]:8/x file:///a/b", "http://… file://…"),
        ("Looking in indexes: https://u:p@h/\nERROR: a\n  b", "a; b"),
        ("x\nERROR: a\n[notice] new pip\nWARNING: w\nDEPRECATION: d", "a"),
        ("npm error code E404\nnpm error\nnpm error A complete log of this run: /x", "E404"),
        ("\x1b[31mERROR: red\x1b[0m\x07", "red"),
        ("at /made/here/site/x.py", "at ./site/x.py"),
        ("plain\nwords", "plain; words"),
        ("ERROR: Exception:\nTraceback (most recent call last):\n  x\nE: why", "E: why"),
        ("Traceback (most recent call last):\n  x\nE: why\n    here\n    ^", "E: why; here"),
        ("", "it said nothing"),
        ("WARNING: only", "it said nothing"),
    ],
)  # fmt: skip
def test_words_tell_the_mistake_and_no_secret(said: str, told: str) -> None:
    """What a person reads is the error, on one line, without talk, colours or addresses. SC-4."""
    assert error_line(said, Path("/made/here")) == told


def test_words_are_few() -> None:
    """Of a long lament the end is told."""
    told = error_line(
        "ERROR: start\n" + "".join(f"line {n} {'x' * 100}\n" for n in range(999)), Path("/")
    )
    assert len(told) <= 1_500
    assert "line 998" in told


def test_an_installer_sees_the_operators_settings_and_not_this_services_secrets() -> None:
    """Indexes, proxies and certificates are passed on; keys of this service are not. PK-8, SC-4."""
    settings = {"PIP_INDEX_URL": "i", "npm_config_registry": "r", "https_proxy": "p", "HOME": "h"}
    ours = {"WFCORE_STORE": "postgresql://u:p@h/d", "OPENAI_API_KEY": "k", "wfcore_x": "1"}
    assert passed_on(settings | ours) == settings
