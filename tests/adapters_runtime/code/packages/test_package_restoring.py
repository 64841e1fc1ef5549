"""Packages that are installed when a step needs them: what becomes of the step meanwhile. PK-5."""

import asyncio
import errno
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from attrs import evolve

from adapters_runtime.code.packages.environments import AT_ONCE
from adapters_runtime.code.packages.sandbox import Sandbox
from adapters_runtime.code.runner import CodeStepRunner
from adapters_runtime.sandbox.client import Ended, LaunchOrder, Spawner
from wfcore.errors import PackagesUnavailable
from wfcore.model.workflow import Language, Needs
from wfcore.ports.runtime import LanguageState, NoEnvironments, Say, StepJob
from wfcore.testing.contracts.steps import job, silent
from wfcore.testing.fakes_running import DictFiles

from .test_package_folders import Notes, folders


class Absent(NoEnvironments):
    """No packages are here; *restoring* says what becomes of an attempt to install them."""

    def __init__(self, restoring: Callable[[], Awaitable[str]]) -> None:
        self._restoring = restoring

    async def restore(self, needs: Needs) -> str:
        return await self._restoring()


@asynccontextmanager
async def a_runner(
    root: Path, restoring: Callable[[], Awaitable[str]]
) -> AsyncIterator[CodeStepRunner]:
    runner = CodeStepRunner(root, DictFiles(), lambda: "art", environments=Absent(restoring))
    try:
        yield runner
    finally:
        await runner.close()


def importing() -> StepJob:
    """A job whose step has a requirement."""
    made = job("import tiny")
    return evolve(made, step=evolve(made.step, requirements=("tiny==1.0",)))


@pytest.mark.parametrize(
    ("trouble", "says", "of_the_step"),
    [
        (PackagesUnavailable("pip failed"), "packages cannot be installed here: pip", True),
        (OSError(errno.ENOSPC, "write failed"), "the disk has no space", False),
    ],
)
async def test_what_cannot_be_installed_now_delays_the_step(
    tmp_path: Path, trouble: Exception, says: str, of_the_step: bool
) -> None:
    """
    Nothing of the step ran, so it begins again later: a few times where its packages are the
    matter, as often as it takes where the machine is. PK-5, EX-27.
    """

    async def restoring() -> str:
        raise trouble

    async with a_runner(tmp_path, restoring) as runner:
        end = await runner.run(importing(), silent)
    assert says in (end.postponed or "")
    assert (end.error, end.lasting, end.alone) == (None, of_the_step, of_the_step)


async def test_the_time_of_an_installation_is_not_that_of_the_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step has all of its timeout from its start, once its packages are there."""
    seen: list[object] = []

    async def restoring() -> str:
        seen.append("installed")
        return str(tmp_path)

    async def run(spawner: Spawner, order: LaunchOrder, say: Say) -> Ended:
        seen.append(order.timeout_s)
        return Ended(exit=0)

    monkeypatch.setattr(Spawner, "run", run)
    asked = importing()
    async with a_runner(tmp_path, restoring) as runner:
        assert (await runner.run(asked, silent)).error is None
    assert seen == ["installed", asked.step.timeout_ms / 1_000]


@pytest.mark.parametrize("how", ["cancelled", "closed"])
async def test_an_installation_ends_with_its_step_and_its_server(tmp_path: Path, how: str) -> None:
    """Whoever is cancelled, or stops, waits for no installer; the step has not begun."""
    begun, ended = asyncio.Event(), asyncio.Event()

    async def restoring() -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    async with a_runner(tmp_path, restoring) as runner:
        asked = importing()
        running = asyncio.create_task(runner.run(asked, silent))
        await begun.wait()
        if how == "cancelled":
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        else:
            await runner.close()
            end = await running
            assert "this server is stopping" in (end.postponed or "")
        assert ended.is_set()


class Counting(Notes):
    """Knows how many run, and how many ran at the same time at most."""

    def __init__(self) -> None:
        super().__init__()
        self.running, self.most = 0, 0

    async def install(
        self, box: Sandbox, folder: Path, packages: Collection[str], lock: str, state: LanguageState
    ) -> None:
        self.running += 1
        self.most = max(self.most, self.running)
        for _ in range(100):
            await asyncio.sleep(0)
        await super().install(box, folder, packages, lock, state)
        self.running -= 1


async def test_not_all_sets_are_installed_at_the_same_time(tmp_path: Path) -> None:
    """A server that lacks many sets runs a few installers at once, and installs them all."""
    installer = Counting()
    kept = folders(tmp_path, installer)
    needs = [Needs(Language.PYTHON, (f"a=={n}",), f"a=={n}") for n in range(3 * AT_ONCE)]
    places = await asyncio.gather(*map(kept.restore, needs))
    assert len(set(places)) == kept.usage().count == len(needs)
    assert 1 < installer.most <= AT_ONCE


class Failing(Notes):
    """The system fails it with an error of this number."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    async def install(
        self, box: Sandbox, folder: Path, packages: Collection[str], lock: str, state: LanguageState
    ) -> None:
        raise OSError(self.number, "write failed")


@pytest.mark.parametrize(("number", "of_the_machine"), [(errno.ENOSPC, True), (errno.ELOOP, False)])
async def test_what_the_machine_lacks_is_told_apart(
    tmp_path: Path, number: int, of_the_machine: bool
) -> None:
    """A full disk is the machine's, for a step; whoever applies a workflow reads one error."""
    kept, needs = folders(tmp_path, Failing(number)), Needs(Language.PYTHON, ("a==1",), "a==1")
    with pytest.raises(PackagesUnavailable, match="write failed"):
        await kept.prepare(needs)
    with pytest.raises(OSError if of_the_machine else PackagesUnavailable, match="write failed"):
        await kept.restore(needs)
