"""
A moment at which a planted server stops dead, so that the loop need not hope to hit it.

The loop arms the fault; the first server that comes to its moment then freezes as it is and says
so. What follows (kill -9, or somebody else taking over) is the loop's business. Files in one
folder are all that the two know of each other.
"""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from signal import SIGSTOP

from wfcore.model.execution import Execution
from wfcore.ports.runtime import StepJob
from wfcore.usecases.executions import worker
from wfcore.usecases.executions.worker import Lease, Work
from wfcore.usecases.services import Services

FOLDER = "PROOF_FAULTS"
"""The environment variable that names the folder."""
SOON_S = 0.005


def expect() -> None:
    """Say that there is a moment to come: the loop then waits for it a little longer."""
    (Path(os.environ[FOLDER]) / "expected").touch()


def freeze(about: str) -> bool:
    """Where the fault is armed: stop this whole process here. Whether it was, and was woken."""
    folder = Path(os.environ[FOLDER])
    try:
        (folder / "armed").unlink()
    except FileNotFoundError:
        return False
    _say(folder, "struck", about)
    os.kill(os.getpid(), SIGSTOP)
    return True


def freeze_in_first_step(is_meant: Callable[[Execution], bool]) -> None:
    """The moment: the first step of such an execution is on record, and its process has spoken."""
    expect()
    begin = worker.begin
    pending = set[asyncio.Task[None]]()

    async def begin_and_watch(services: Services, lease: Lease) -> Work:
        work = await begin(services, lease)
        async with services.store.view() as view:
            run = await view.get(Execution, lease.execution_id)
        if run is not None and is_meant(run):
            jobs = [job for job in work.jobs if isinstance(job, StepJob)]
            pending.update(asyncio.create_task(_freeze_in(job)) for job in jobs[:1])
        return work

    worker.begin = begin_and_watch


async def _freeze_in(job: StepJob) -> None:
    while not spoken(job):  # noqa: ASYNC110
        await asyncio.sleep(SOON_S)
    freeze("")


def spoken(job: StepJob) -> int:
    """How often a process of this attempt has said that it begins."""
    ledger = Path(job.environment["WF_VAR_ledger"]).read_text()
    return ledger.count(f"begun {job.execution_id} {job.step_name} {job.attempt} ")


def over() -> None:
    """The process that was woken has done what it was about to do."""
    _say(Path(os.environ[FOLDER]), "over", "")


def _say(folder: Path, name: str, text: str) -> None:
    part = folder / f"{name}.part"
    part.write_text(text)
    part.rename(folder / name)


class Faults:
    """The loop's side."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder

    def arm(self) -> None:
        """From now on the next server that comes to its moment freezes."""
        for name in ("struck", "over"):
            (self.folder / name).unlink(missing_ok=True)
        (self.folder / "armed").touch()

    def disarm(self) -> None:
        """No server freezes from now on, unless one has."""
        with suppress(FileNotFoundError):
            (self.folder / "armed").unlink()

    @property
    def is_expected(self) -> bool:
        """Whether there is a moment at which a server would freeze."""
        return (self.folder / "expected").exists()

    @property
    def struck(self) -> str | None:
        """What the frozen server said; None: none is frozen."""
        try:
            return (self.folder / "struck").read_text()
        except FileNotFoundError:
            return None

    @property
    def is_over(self) -> bool:
        """Whether the server that was woken has gone on."""
        return (self.folder / "over").exists()
