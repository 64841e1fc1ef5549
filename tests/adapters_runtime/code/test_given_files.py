"""The files of earlier steps, as a step sees them at each level of isolation."""

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Callable
from hashlib import sha256
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import TypeVar

import pytest
from attrs import evolve, frozen

from adapters_runtime.code import given_files
from adapters_runtime.code.given_files import GivenFiles, InThread
from adapters_runtime.code.runner import CodeStepRunner
from adapters_runtime.sandbox.isolation.config import LADDER, NAMESPACE, PROCESS
from adapters_runtime.sandbox.isolation_level import Isolation
from adapters_store.files import LocalFiles
from adapters_store.objects import PART, ObjectFiles
from wfcore.errors import StoreUnavailable
from wfcore.model.execution import Artifact
from wfcore.model.workflow import CodeStep, Language
from wfcore.ports.files import ArtifactFiles
from wfcore.ports.runtime import StepEnd, StepJob
from wfcore.rules.execution.given_files import GivenFolder, folder_of
from wfcore.testing.builders import artifact
from wfcore.testing.fakes_running import DictFiles
from wfcore.time import DurationMs

T = TypeVar("T")

LIST = """
cd "$WF_FILES"
find . | sort
"""
ATTACK = """
cd "$WF_FILES" || exit 1
chmod -R u+rwx . 2>/dev/null
echo changed > fetch/a.csv
echo more >> fetch/a.csv
truncate -s 0 fetch/a.csv
rm -f fetch/a.csv
echo new > fetch/new.csv
mv fetch/sub/b.csv fetch/c.csv
chmod 000 fetch/a.csv
touch -d @1 fetch/a.csv
ln fetch/a.csv "$WF_ARTIFACTS/linked.csv"
cd / && rm -rf "$WF_FILES"
exit 0
"""


@frozen
class Scene:
    """A runner at one level, over files in a folder."""

    runner: CodeStepRunner
    files: LocalFiles

    async def run(
        self, source: str, *folders: GivenFolder[Artifact], language: Language = Language.BASH
    ) -> StepEnd:
        return await self.runner.run(job(source, *folders, language=language), _silent)


async def _silent(stream: str, lines: str) -> None:
    pass


_ids = count(1)


async def stored(files: ArtifactFiles, names: dict[str, bytes]) -> list[Artifact]:
    """Artifacts with these contents by name."""
    made = []
    for name, content in names.items():
        id = f"art_{next(_ids)}"
        kept = await files.store("exec_1", id, BytesIO(content))
        digest = sha256(content).hexdigest()
        made.append(
            artifact(
                id,
                name=name,
                storage_key=kept.storage_key,
                size=len(content),
                sha256=digest,
                content_type="text/csv",
            )
        )
    return made


def job(
    source: str, *folders: GivenFolder[Artifact], language: Language = Language.BASH
) -> StepJob:
    step = CodeStep("load", language, source, files=tuple(one.step for one in folders))
    return StepJob("exec_1", "wf_1", "load", 1, 1, step, (), {}, {}, files=folders)


@pytest.fixture(params=LADDER)
async def scene(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Scene]:
    """A scene at each level that this machine has."""
    files = LocalFiles(tmp_path / "artifacts")
    isolation = Isolation(forced=request.param)
    runner = CodeStepRunner(tmp_path / "steps", files, lambda: "art", isolation=isolation)
    if (await runner.level()).name != request.param:
        pytest.skip(f"this machine has no level {request.param}")
    yield Scene(runner, files)
    await runner.close()
    assert list((tmp_path / "steps").iterdir()) == []


CONTENT = {"a.csv": b"1,2\n", "sub/b.csv": b"3,4\n"}


async def test_a_step_reads_files_under_the_names_of_artifacts(scene: Scene) -> None:
    """Below `WF_FILES` each earlier step has a folder, empty if the step left nothing. FI-3."""
    left = await stored(scene.files, CONTENT)
    folders = folder_of("fetch", left), folder_of("lines.3.split", ())
    end = await scene.run(f"{LIST} cat fetch/a.csv fetch/sub/b.csv", *folders)
    assert end.error is None
    assert str(end.output).splitlines() == [
        ".",
        "./fetch",
        "./fetch/a.csv",
        "./fetch/sub",
        "./fetch/sub/b.csv",
        "./lines.3.split",
        "1,2",
        "3,4",
    ]


async def test_the_context_lists_the_files(scene: Scene) -> None:
    """Every file is listed with its step, name, path, size, digest and type. FI-3."""
    left = await stored(scene.files, {"a.csv": b"1,2\n"})
    source = """
import json, os
listed = json.load(open(os.environ["WF_CONTEXT"]))["files"]
print(json.dumps([one | {"path": None, "text": open(one["path"]).read()} for one in listed]))
"""
    end = await scene.run(source, folder_of("fetch", left), language=Language.PYTHON)
    assert end.output == [
        {
            "step": "fetch",
            "name": "a.csv",
            "path": None,
            "size": 4,
            "sha256": sha256(b"1,2\n").hexdigest(),
            "contentType": "text/csv",
            "text": "1,2\n",
        }
    ]


async def test_nothing_that_a_step_does_reaches_the_stored_files(scene: Scene) -> None:
    """A step that changes, removes and renames its files changes none that is stored. FI-4."""
    left = await stored(scene.files, CONTENT)
    before = _facts(scene.files.root)
    end = await scene.run(ATTACK, folder_of("fetch", left))
    assert end.error is None
    after = _facts(scene.files.root)
    assert {path: after[path] for path in before} == before
    again = await scene.run('cat "$WF_FILES"/fetch/a.csv', folder_of("fetch", left))
    assert again.output == "1,2"


def _facts(root: Path) -> dict[str, tuple[bytes, int, bool]]:
    """Content, time and readability of each stored file."""
    paths = [path for path in root.rglob("*") if path.is_file()]
    return {str(path): (path.read_bytes(), *_marks(path.stat())) for path in paths}


def _marks(facts: os.stat_result) -> tuple[int, bool]:
    return facts.st_mtime_ns, stat.S_IMODE(facts.st_mode) in (0o600, 0o444)


async def test_no_step_sees_the_files_of_the_step_before(scene: Scene) -> None:
    """A sandbox that serves several steps shows each only its own files. FI-4."""
    first = await stored(scene.files, {"a.csv": b"1"})
    second = await stored(scene.files, {"b.csv": b"2"})
    show = 'echo "${WF_FILES-unset}"; find "$(dirname "$TMPDIR")" -name "*.csv" | sort'
    for _ in range(2):
        one = await scene.run(show, folder_of("one", first))
        assert str(one.output).endswith("/files/one/a.csv")
        two = await scene.run(show, folder_of("two", second))
        assert str(two.output).endswith("/files/two/b.csv")
        assert "a.csv" not in str(two.output)
        none = await scene.run(show)
        assert none.output == "unset"


async def test_a_sandbox_that_showed_files_serves_the_next_step(scene: Scene) -> None:
    """At `namespace` the mount of the files is undone, so that no step waits for a new sandbox."""
    if (await scene.runner.level()).name != NAMESPACE:
        pytest.skip("each step has a sandbox of its own there")
    folder = folder_of("fetch", await stored(scene.files, CONTENT))
    supervisors: set[str] = set()
    for _ in range(12):
        await scene.run("true", folder)
        supervisors.update(_children(scene.runner.spawner_pid))
    assert len(supervisors) <= 6


def _children(pid: int | None) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


async def test_a_file_that_is_gone_fails_the_step_by_name(scene: Scene) -> None:
    """For good: another attempt would not find it either. FI-5."""
    left = await stored(scene.files, CONTENT)
    os.unlink(scene.files.local_path(left[1].storage_key))
    end = await scene.run("exit 7", folder_of("fetch", left))
    assert (end.error, end.permanent) == ("files: fetch/sub/b.csv is gone", True)


async def test_steps_with_the_same_files_share_what_was_laid_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At `namespace`: it is made once, in advance if a later step reads it, and then removed."""
    files, removed = LocalFiles(tmp_path / "artifacts"), asyncio.Event()
    left = await stored(files, CONTENT)
    (tmp_path / "trees").mkdir()

    async def in_thread(work: Callable[[], T]) -> T:
        done = work()
        if not (tmp_path / "trees/files-1").exists():
            removed.set()
        return done

    trees = GivenFiles(files, tmp_path / "trees", NAMESPACE, in_thread, 1 << 20)
    await trees.prepare(folder_of("fetch", left))
    async with trees.tree((folder_of("fetch", left),)) as one:
        async with trees.tree((folder_of("fetch", left[::-1]),)) as other:
            assert one == other
        assert (Path(one) / "fetch/sub/b.csv").stat().st_nlink == 2
        async with trees.tree((folder_of("fetch", left[:1]),)) as less:
            assert less != one
    monkeypatch.setattr(given_files, "KEPT_S", 0.0)
    async with trees.tree((folder_of("fetch", left),)) as again:
        assert again == one
    await removed.wait()
    trees.close()


async def test_content_from_elsewhere_is_fetched_once(tmp_path: Path) -> None:
    """As long as there is room; what is read at the moment stays in any case. FI-5."""
    files, threads = CountedFiles(), _threads()
    left = await stored(files, {"a": b"1" * 600, "b": b"2" * 600})
    (tmp_path / "trees").mkdir()
    trees = GivenFiles(files, tmp_path / "trees", PROCESS, threads, 1_000)
    for _ in range(2):
        async with trees.tree((folder_of("fetch", left),)) as tree:
            assert (Path(tree) / "fetch/b").read_bytes() == b"2" * 600
    first, second = (one.storage_key for one in left)
    assert files.reads == [first, second, first]
    async with trees.tree((folder_of("fetch", left[:1]), folder_of("again", left[:1]))) as tree:
        assert (Path(tree) / "again/a").read_bytes() == b"1" * 600
    assert files.reads == [first, second, first, first]


async def test_a_store_that_does_not_answer_postpones_the_step(tmp_path: Path) -> None:
    """Nothing of the step has run, so the attempt begins again later. FI-5, EX-27."""
    files = CountedFiles()
    left = await stored(files, {"a": b"1"})
    runner = CodeStepRunner(tmp_path / "steps", files, lambda: "art")
    files.trouble = StoreUnavailable(detail="artifact: no answer")
    end = await runner.run(job("true", folder_of("fetch", left)), _silent)
    assert end.postponed is not None
    assert end.postponed.startswith("its files cannot be fetched")
    assert (end.lasting, end.alone) == (True, True)
    files.trouble = None
    end = await runner.run(job('cat "$WF_FILES/fetch/a"', folder_of("fetch", left)), _silent)
    assert end.output == 1
    await runner.close()


async def test_content_that_changed_on_its_way_is_refused(tmp_path: Path) -> None:
    """What arrives must have the digest of the record. FI-5."""
    files = CountedFiles()
    (one,) = await stored(files, {"a": b"1"})
    runner = CodeStepRunner(tmp_path / "steps", files, lambda: "art")
    other = folder_of("fetch", [evolve(one, sha256="0" * 64)])
    end = await runner.run(job("true", other), _silent)
    assert (end.error, end.permanent) == ("files: a is not as it was stored", True)
    await runner.close()


async def test_fetching_takes_none_of_the_step_s_time(tmp_path: Path) -> None:
    """A step with a timeout of half a second waits for its files as long as they need. FI-5."""
    files = CountedFiles()
    left = await stored(files, {"a": b"1"})
    runner = CodeStepRunner(tmp_path / "steps", files, lambda: "art")
    await runner.level()
    files.pause_s = 1.0
    asked = job('cat "$WF_FILES/fetch/a"', folder_of("fetch", left))
    short = evolve(asked, step=evolve(asked.step, timeout_ms=DurationMs(500)))
    end = await runner.run(short, _silent)
    assert (end.output, end.error) == (1, None)
    await runner.close()


class CountedFiles(DictFiles):
    """Files that note each read, and may be slow or fail."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[str] = []
        self.trouble: Exception | None = None
        self.pause_s = 0.0

    async def read(self, storage_key: str, start: int, end: int) -> AsyncIterator[bytes]:
        await asyncio.sleep(self.pause_s)
        self.reads.append(storage_key)
        if self.trouble:
            raise self.trouble
        async for chunk in super().read(storage_key, start, end):
            yield chunk


def _threads() -> InThread:
    async def in_thread(work: Callable[[], T]) -> T:
        return await asyncio.to_thread(work)

    return in_thread


async def test_another_machine_reads_the_same_from_a_bucket(bucket: str, tmp_path: Path) -> None:
    """What one machine left, a runner with a folder of its own reads, in parts too. FI-2."""
    large = os.urandom(PART + 1)
    left = await stored(ObjectFiles(bucket), {"a.csv": b"1,2\n", "large.bin": large})
    runner = CodeStepRunner(tmp_path / "steps", ObjectFiles(bucket), lambda: "art")
    source = 'cd "$WF_FILES/fetch"; cat a.csv; sha256sum < large.bin'
    end = await runner.run(job(source, folder_of("fetch", left)), _silent)
    assert end.output == f"1,2\n{sha256(large).hexdigest()}  -"
    await runner.close()
