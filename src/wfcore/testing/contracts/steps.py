"""The tools of the runner contracts: jobs, recorded lines, and a check for live processes."""

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from attrs import evolve

from wfcore.model.json import Json, JsonObject
from wfcore.model.workflow import CodeStep, Language
from wfcore.ports.runtime import StepJob
from wfcore.time import DurationMs


def job(
    source: str = "",
    language: Language = Language.PYTHON,
    *,
    argv: tuple[str, ...] = (),
    environment: Mapping[str, str] | None = None,
    context: JsonObject | None = None,
    timeout_ms: int = 30_000,
    log: bool = False,
) -> StepJob:
    """A job with its own execution id, which marks all processes of the job."""
    return StepJob(
        execution_id=f"exec_{secrets.token_hex(12)}",
        workflow_id="wf_contract",
        step_name="work",
        attempt=2,
        fence=1,
        step=CodeStep(
            name="work",
            language=language,
            source=source,
            command=argv,
            timeout_ms=DurationMs(timeout_ms),
        ),
        argv=argv,
        environment=environment or {},
        context=context or {"variables": {}, "steps": {}, "execution": {}},
        log=log,
    )


async def silent(stream: str, lines: str) -> None:
    """A listener for jobs that must not report lines. Raises `AssertionError`."""
    raise AssertionError(f"no lines were asked for, {stream} got {lines!r}")


class Lines:
    """A `Say` that records lines."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.heard = asyncio.Event()

    async def __call__(self, stream: str, lines: str) -> None:
        self.calls.append((stream, lines))
        self.heard.set()

    def of(self, stream: str) -> str:
        """All lines of one stream."""
        return "".join(lines for name, lines in self.calls if name == stream)


class Ticks(Lines):
    """
    A `Say` that counts the lines that a ticking step prints, and the lines that the step writes to
    *file*. With *fails*, a call raises `ZeroDivisionError`.
    """

    def __init__(self, file: Path, *, fails: bool) -> None:
        super().__init__()
        self._file = file
        self._fails = fails

    async def __call__(self, stream: str, lines: str) -> None:
        await super().__call__(stream, lines)
        if self._fails:
            raise ZeroDivisionError

    def counted(self, asked: StepJob) -> StepJob:
        """The job *asked*, with the path of the file in its variable `ticks`."""
        path = str(self._file)
        variables = {**_object(asked.context.get("variables")), "ticks": path}
        return evolve(
            asked,
            environment={**asked.environment, "WF_VAR_ticks": path},
            context={**asked.context, "variables": variables},
        )

    def count(self) -> int:
        """The number of ticks so far: printed lines and written lines together."""
        written = self._file.read_text().count("\n") if self._file.exists() else 0
        return written + self.of("stdout").count("\n")


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, Mapping) else {}


async def until(holds: Callable[[], object], within_s: float) -> None:
    """Return as soon as *holds* returns true. Raises `TimeoutError` after *within_s* seconds."""
    deadline = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError
        await asyncio.sleep(0.01)


def alive(marker: str, among: Sequence[int] | None = None) -> list[int]:
    """
    The processes with *marker* in their environment or command line, without zombies.

    *among*: the only processes to examine, which is much faster than examining all processes.
    """
    if among is not None:
        return [pid for pid in among if _carries(Path(f"/proc/{pid}"), marker)]
    return [int(path.name) for path in Path("/proc").glob("[0-9]*") if _carries(path, marker)]


def _carries(process: Path, marker: str) -> bool:
    try:
        return any(marker.encode() in (process / name).read_bytes() for name in _PLACES)
    except OSError:
        return False  # gone, or somebody else's


_PLACES = ("environ", "cmdline")
