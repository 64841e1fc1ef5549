"""What a step sees of the file system: what the operator says, and never the data folder."""

import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from adapters_runtime.code.runner import CodeStepRunner, StepLimits
from adapters_runtime.sandbox.isolation.config import LANDLOCK, NAMESPACE, UID
from adapters_runtime.sandbox.isolation.filesystem import RESOLVING, carve, settings
from adapters_runtime.sandbox.isolation_level import Isolation
from wfcore.model.workflow import Language
from wfcore.testing.contracts.steps import job, silent

SHOWN = (*RESOLVING, "passwd", "group", "hostname")
Made = Callable[..., Any]


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Where other users can pass: pytest closes its own folders, and does so again at any time."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture(params=[NAMESPACE, UID, LANDLOCK])
async def runner_with(
    request: pytest.FixtureRequest, tmp_path: Path, files: Any
) -> AsyncIterator[Made]:
    """A runner at some level, with what the operator says."""
    async with AsyncExitStack() as stack:

        async def made(**said: Any) -> CodeStepRunner:
            isolation = Isolation(forced=request.param, **said)
            runner = CodeStepRunner(
                tmp_path / "data" / "steps",
                files,
                lambda: "art",
                StepLimits(disk=8 << 20),
                isolation=isolation,
            )
            stack.push_async_callback(runner.close)
            level = await runner.level()
            if level.name != request.param:
                pytest.skip(f"no level {request.param} here: {level.missed}")
            return runner

        yield made


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder with a file, which everybody may write to."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o777)
    (folder / "file").write_text("there")
    (folder / "file").chmod(0o666)
    return folder


async def _said(runner: CodeStepRunner, source: str) -> Any:
    end = await runner.run(job(source, Language.BASH), silent)
    assert end.error is None, end.error
    return end.output


def _of_the_machine() -> tuple[Path, Path]:
    """A file and a folder of /etc that everybody may read, and that steps are not shown."""
    others = sorted(path for path in Path("/etc").iterdir() if path.name not in settings())
    public = [path for path in others if not path.is_symlink() and path.stat().st_mode & 4]
    file = next(path for path in public if path.is_file() and path.name not in SHOWN)
    return file, next(path for path in public if path.is_dir() and path.stat().st_mode & 1)


HOLES = 'truncate -s 5M "$WF_ARTIFACTS/a"; truncate -s 4M "$WF_ARTIFACTS/b"'


async def test_artifacts_fit_into_a_folder_of_limited_size(runner_with: Made) -> None:
    """Holes take nothing of the folder, and are refused where they would take what it may not."""
    runner = await runner_with()
    end = await runner.run(job(HOLES, Language.BASH), silent)
    is_limited = (await runner.level()).name == NAMESPACE
    assert [file.name for file in end.files] == (["a"] if is_limited else ["a", "b"])
    assert ("artifacts of more than 8,388,608 bytes" in (end.error or "")) is is_limited


async def test_nothing_is_seen_unasked(runner_with: Made, shared: Path) -> None:
    """A folder that nobody named is not there, or closed."""
    runner = await runner_with()
    assert await _said(runner, f"cat {shared}/file 2>/dev/null || echo no") == "no"


async def test_settings_of_the_machine_may_be_read(runner_with: Made) -> None:
    """A file and a folder of /etc that steps do not see otherwise, if they are named."""
    file, folder = _of_the_machine()
    runner = await runner_with(reads=(str(file), str(folder)))
    assert await _said(runner, f"cmp {file} {file} && ls {folder} > /dev/null && echo yes") == "yes"


async def test_what_may_be_read(runner_with: Made, shared: Path) -> None:
    """`reads` are seen where they are, and cannot be changed, whoever may write to them."""
    runner = await runner_with(reads=(str(shared),))
    tried = f"cat {shared}/file; (echo x > {shared}/file) 2>/dev/null || echo no"
    assert await _said(runner, tried) == "thereno"
    assert (shared / "file").read_text() == "there"


async def test_what_may_be_written(runner_with: Made, shared: Path) -> None:
    """What is written into `writes` is there afterwards."""
    runner = await runner_with(writes=(str(shared),))
    await _said(runner, f"echo more >> {shared}/file; echo new > {shared}/new")
    assert (shared / "file").read_text() == "theremore\n"
    assert (shared / "new").exists()


async def test_a_single_file(runner_with: Made, shared: Path) -> None:
    """A file alone can be named too; its neighbours stay unseen."""
    (shared / "other").write_text("x")
    runner = await runner_with(reads=(f"{shared}/file",))
    tried = f"cat {shared}/file; cat {shared}/other 2>/dev/null || echo no"
    assert await _said(runner, tried) == "thereno"


async def test_hidden_inside_of_what_is_seen(runner_with: Made, shared: Path) -> None:
    """What is hidden stays hidden, also below a folder that steps may read."""
    secrets = shared / "data" / "deep"
    secrets.mkdir(parents=True)
    secrets.chmod(0o755)
    (secrets / "db").write_text("x")
    runner = await runner_with(reads=(str(shared),), hidden=(str(secrets),))
    tried = f"cat {shared}/file; cat {secrets}/db 2>/dev/null || echo no"
    assert await _said(runner, tried) == "thereno"


async def test_seen_inside_of_what_is_hidden(runner_with: Made, shared: Path) -> None:
    """A step's own interpreter or packages may lie in the data folder: only they are seen."""
    for name in ("packages", "db"):
        (shared / "data" / name).mkdir(parents=True)
        (shared / "data" / name / "file").write_text(name)
    for folder in (shared / "data", *(shared / "data").iterdir()):
        folder.chmod(0o755)
    packages = f"{shared}/data/packages"
    runner = await runner_with(reads=(packages,), hidden=(f"{shared}/data",))
    tried = f"cat {packages}/file; cat {shared}/data/db/file 2>/dev/null || echo no"
    assert await _said(runner, tried) == "packagesno"


async def test_missing_paths_are_no_trouble(runner_with: Made, tmp_path: Path) -> None:
    """A path that has gone since is left out."""
    runner = await runner_with(reads=(f"{tmp_path}/gone",), writes=(f"{tmp_path}/too",))
    assert await _said(runner, "echo 1") == 1


def test_carving(tmp_path: Path) -> None:
    """A folder around a secret is allowed by its other entries, at any depth."""
    for path in ("a/secret/x", "a/b", "c"):
        (tmp_path / path).mkdir(parents=True)
    root, hidden = str(tmp_path), f"{tmp_path}/a/secret"
    assert sorted(carve([root], [hidden])) == [f"{root}/a/b", f"{root}/c"]
    assert list(carve([hidden], [hidden])) == []
    assert list(carve([f"{hidden}/x"], [hidden])) == [f"{hidden}/x"]
    assert list(carve([f"{root}/c"], [hidden])) == [f"{root}/c"]
