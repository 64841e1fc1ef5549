"""
The environment of a code step: its program, its variables, its files and packages.

The variables are `WF_VAR_*`, `WF_SECRET_*`, `WF_CONTEXT`, `WF_OUTPUT`, `WF_STATE`,
`WF_ARTIFACTS`, `WF_FILES`, `WF_EXECUTION_ID`, `WF_STEP_NAME`, `WF_ATTEMPT`; PATH, LANG and TZ of
the server; HOME and TMPDIR of the step's own.
"""

import asyncio
import ctypes
import json
import shutil
from collections.abc import Mapping, Sequence
from locale import CODESET, LC_CTYPE
from pathlib import Path
from typing import cast

import orjson

from adapters_runtime.code.languages import recipes_on
from adapters_runtime.sandbox.client import uninterrupted
from adapters_runtime.sandbox.launch import start_room
from adapters_runtime.sandbox.step_folders import StepFolder
from wfcore.errors import PackagesUnavailable
from wfcore.model.json import Json, JsonObject
from wfcore.model.workflow import Language, Needs
from wfcore.ports.runtime import Environments, LanguageState, StepJob

_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
_LONGEST_VARIABLE = 131_071  # the kernel's: name, equals sign, value


class CannotRun(Exception):
    """Raised for an attempt that cannot start, now or later; the message says why."""


def passed_on(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of the server's environment for steps, with a locale of UTF-8. CS-4."""
    lang = environment.get("LANG", "")
    passed = {
        "PATH": environment.get("PATH") or _DEFAULT_PATH,
        "LANG": lang if is_utf8(lang) else "C.UTF-8",
    }
    if zone := environment.get("TZ"):
        passed["TZ"] = zone
    return passed


def is_utf8(locale: str) -> bool:
    """Whether *locale* exists on this machine, and its texts are UTF-8."""
    system = ctypes.CDLL(None)
    system.newlocale.restype = system.nl_langinfo_l.restype = ctypes.c_void_p
    made = locale and system.newlocale(1 << LC_CTYPE, locale.encode(errors="replace"), None)
    if not made:
        return False
    held = ctypes.c_void_p(made)
    try:
        return ctypes.string_at(system.nl_langinfo_l(CODESET, held)) == b"UTF-8"
    finally:
        system.freelocale(held)


def links(job: StepJob, modules: str | None) -> dict[str, str]:
    """The links in the step's folder, by name to target. Node searches for packages there."""
    if modules is None or job.step.language is Language.PYTHON:
        return {}
    return {"node_modules": modules}


def variables(
    folder: StepFolder,
    job: StepJob,
    passed: Mapping[str, str],
    modules: str | None = None,
    argv: Sequence[str] = (),
) -> dict[str, str]:
    """
    The whole environment of a step that is started as *argv*. CS-3, CS-4.

    If all variables together are too large, the largest are left to the context file. Raises
    `CannotRun` if no process could have this environment.
    """
    path = {"PYTHONPATH": modules} if modules and job.step.language is Language.PYTHON else {}
    environment = {
        **job.environment,
        **path,
        **passed,
        "HOME": folder.home,
        "TMPDIR": folder.tmp,
        "WF_CONTEXT": folder.context,
        "WF_OUTPUT": folder.output,
        "WF_STATE": folder.state,
        "WF_ARTIFACTS": folder.artifacts,
        "WF_EXECUTION_ID": job.execution_id,
        "WF_STEP_NAME": job.step_name,
        "WF_ATTEMPT": str(job.attempt),
        **({"WF_FILES": folder.files} if job.step.files else {}),
    }
    for name, value in environment.items():
        if "\0" in value:
            raise CannotRun(f"the value of {name} contains a NUL character")
        if len(name) + 1 + len(value.encode("utf-8", "surrogatepass")) > _LONGEST_VARIABLE:
            raise CannotRun(f"the value of {name} is too long for an environment variable")
    return _within(environment, start_room() - _FOR_CHILDREN - sum(map(_taken, argv)))


_FOR_CHILDREN = 131_072
"""The bytes left for the arguments of programs that the step starts."""
_IN_CONTEXT = ("WF_VAR_", "WF_ERROR")


def _taken(*texts: str) -> int:
    """
    The bytes that an argument or variable takes: including each end mark, and the pointer to the
    text.
    """
    return sum(len(text.encode("utf-8", "surrogatepass")) + 1 for text in texts) + 8


def _within(environment: dict[str, str], room: int) -> dict[str, str]:
    sizes = {name: _taken(name, value) for name, value in environment.items()}
    over = sum(sizes.values()) - room
    for name in sorted(sizes, key=sizes.__getitem__, reverse=True):
        if over > 0 and name.startswith(_IN_CONTEXT):
            over -= sizes.pop(name)
    if over > 0:
        largest = max(sizes, key=sizes.__getitem__)
        raise CannotRun(
            "its environment and arguments are larger than a process can have; "
            f"the largest value is that of {largest}"
        )
    return {name: environment[name] for name in sizes}


def interpreted(folder: StepFolder, job: StepJob, state: LanguageState) -> list[str]:
    """The arguments for a step with source. Raises `CannotRun` without an interpreter."""
    step = job.step
    recipe = recipes_on(step.runtime).get(step.language)
    if state.path is None or recipe is None:
        raise CannotRun(f"{step.language} cannot run here; to install it: {state.cure}")
    arguments = recipe.arguments(
        folder.path, state.version or "", live=job.log, modules=step.needs is not None
    )
    return [state.path, *arguments]


def command(argv: tuple[str, ...], path: str) -> list[str]:
    """The arguments of a command, its program looked up on *path*. Raises `CannotRun`."""
    if not argv:
        raise CannotRun("the command is empty")
    if any("\0" in argument for argument in argv):
        raise CannotRun("an argument of the command contains a NUL character")
    for number, argument in enumerate(argv):
        if len(argument.encode("utf-8", "surrogatepass")) > _LONGEST_VARIABLE:
            raise CannotRun(
                f"argument {number} of the command is over {_LONGEST_VARIABLE:,} bytes; "
                "let the program read it from WF_CONTEXT"
            )
    if sum(map(_taken, argv)) > start_room() - _FOR_CHILDREN:
        largest = max(range(len(argv)), key=lambda at: len(argv[at]))
        raise CannotRun(
            "the arguments of the command are larger than a process can have; "
            f"the largest is argument {largest}"
        )
    program = shutil.which(argv[0], path=path)
    if program is None:
        raise CannotRun(f"the command {argv[0]!r} was not found on PATH")
    return [program, *argv[1:]]


def files(job: StepJob) -> dict[str, bytes]:
    """The files in the step's folder at its start beside the context, by name: source and more."""
    content: dict[str, bytes] = {}
    recipe = recipes_on(job.step.runtime).get(job.step.language)
    if recipe:
        source = job.step.source
        if job.step.language is Language.BASH:  # which reads a Windows line end as a word
            source = source.replace("\r\n", "\n")
        content[recipe.file] = source.encode("utf-8", "surrogatepass")
        for name, text in recipe.more_files.items():
            content[name] = text.encode()
    return content


def context(job: StepJob, folder: StepFolder) -> list[bytes]:
    """The content of the context file, in pieces; no large output is copied. CS-2, ST-7."""
    names = {**job.names, "files": _listed(job, folder)}
    if not job.outputs:
        return [_as_json(names)]
    steps = cast("Mapping[str, JsonObject]", names.pop("steps"))
    pieces = [_as_json(names)[:-1], b',"steps":']
    before = b"{"
    for name, result in steps.items():
        pieces += (before, _as_json(name), b":")
        if name in job.outputs:
            status = _as_json(result["status"])
            pieces += (b'{"status":', status, b',"output":', job.outputs[name], b"}")
        else:
            pieces.append(_as_json(result))
        before = b","
    return [*pieces, b"}}"]


def _listed(job: StepJob, folder: StepFolder) -> list[JsonObject]:
    """The files of earlier steps, with their paths as the step sees them. FI-3."""
    return [
        {
            "step": one.step,
            "name": file.name,
            "path": f"{folder.files}/{one.step}/{path}",
            "size": file.size,
            "sha256": file.sha256,
            "contentType": file.content_type,
        }
        for one in job.files
        for path, file in one.files.items()
    ]


def _as_json(value: Json) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # an integer beyond 64 bits, or half a character
        return json.dumps(value).encode()


class PackageFolders:
    """
    The folders of packages for steps. Missing packages are installed at their first use. PK-5.

    *copies*: a folder that every user can reach, to which packages are copied at first use. None:
    steps read them in place.
    """

    def __init__(self, environments: Environments, copies: Path | None = None) -> None:
        self._environments = environments
        self._copies = copies
        self._made: dict[str, asyncio.Future[str]] = {}
        self._installing: set[asyncio.Timeout] = set()
        self._left_s: float | None = None

    def close(self) -> None:
        """Cancel running installations, and begin no more."""
        self._left_s = 0
        for limit in self._installing:
            limit.reschedule(0)

    async def path(self, needs: Needs) -> str:
        """The folder of a step's packages. Raises `PackagesUnavailable`, `OSError`."""
        modules = await asyncio.to_thread(self._environments.find, needs)
        modules = modules or await self._installed(needs)
        return modules if self._copies is None else await self._copied(modules, self._copies)

    async def _installed(self, needs: Needs) -> str:
        try:
            async with asyncio.timeout(self._left_s) as limit:
                self._installing.add(limit)
                try:
                    return await self._environments.restore(needs)
                finally:
                    self._installing.discard(limit)
        except TimeoutError:
            raise PackagesUnavailable("this server is stopping") from None

    async def _copied(self, modules: str, copies: Path) -> str:
        if modules not in self._made:
            copying = asyncio.to_thread(_copy, modules, copies / str(len(self._made)))
            self._made[modules] = asyncio.ensure_future(copying)
        try:
            return await uninterrupted(self._made[modules])
        except OSError:
            self._made.pop(modules, None)
            raise


def _copy(modules: str, place: Path) -> str:
    place.parent.mkdir(0o711, exist_ok=True)
    place.parent.chmod(0o711)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(0o711)
    place.chmod(0o711)
    copy = place / Path(modules).name
    shutil.copytree(modules, copy, symlinks=True)
    return str(copy)
