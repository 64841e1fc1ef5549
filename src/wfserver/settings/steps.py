"""Settings of code steps: their isolation, the paths that they see, and their limits."""

import os
import re
from collections.abc import Mapping

from attrs import frozen

from adapters_runtime.sandbox.isolation.config import LADDER, STEP_DIR
from wfcore.errors import InvalidInput
from wfcore.model.workflow import Runtime

_SIZE = re.compile(r"(\d{1,9})(B|KB|MB|GB)?", re.IGNORECASE)
_UNITS = {"B": 0, "KB": 10, "MB": 20, "GB": 30}
_LEAST_MEMORY, _LEAST_DISK = 16 << 20, 1 << 20
_MOST_COUNT = 1_000_000


@frozen
class StepSettings:
    """
    The settings of code steps. `isolation` None: the strongest available level. `minimum` None:
    `landlock`, or the level in `isolation`. Sizes are bytes. `warm`: interpreters are started in
    advance. `javascript`: the runtime of JavaScript and TypeScript for steps without `runtime`.
    """

    isolation: str | None = None
    minimum: str | None = None
    memory: int = 1 << 30
    disk: int = 512 << 20
    files: int = 16_384
    processes: int = 256
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    warm: bool = True
    javascript: Runtime = Runtime.NODE


def step_settings(env: Mapping[str, str]) -> StepSettings:
    """The settings in the environment. Raises `InvalidInput` with the variable."""
    default = StepSettings()
    return StepSettings(
        isolation=_level(env, "WFCORE_ISOLATION"),
        minimum=_level(env, "WFCORE_MIN_ISOLATION"),
        memory=size(env, "WFCORE_STEP_MEMORY", default.memory, _LEAST_MEMORY),
        disk=size(env, "WFCORE_STEP_DISK", default.disk, _LEAST_DISK),
        files=_number(env, "WFCORE_STEP_FILES", default.files, 64),
        processes=_number(env, "WFCORE_STEP_PROCESSES", default.processes, 8),
        reads=_paths(env, "WFCORE_STEP_READS"),
        writes=_paths(env, "WFCORE_STEP_WRITES"),
        warm=switch(env, "WFCORE_WARM", default.warm),
        javascript=_runtime(env, "WFCORE_JAVASCRIPT", default.javascript),
    )


def _runtime(env: Mapping[str, str], name: str, default: Runtime) -> Runtime:
    text = env.get(name, "").strip().lower()
    if text not in ("", *Runtime):
        raise InvalidInput(name, f"must be one of {', '.join(Runtime)}")
    return Runtime(text) if text else default


def _level(env: Mapping[str, str], name: str) -> str | None:
    text = env.get(name, "").strip().lower()
    if not text or (text == "auto" and name == "WFCORE_ISOLATION"):
        return None
    if text not in LADDER:
        raise InvalidInput(name, f"must be one of {', '.join(LADDER)}")
    return text


def size(env: Mapping[str, str], name: str, default: int, least: int) -> int:
    """The size in the variable *name*, such as 512MB, in bytes. Raises `InvalidInput`."""
    text = env.get(name, "").strip()
    if not text:
        return default
    found = _SIZE.fullmatch(text)
    value = int(found[1]) << _UNITS[(found[2] or "B").upper()] if found else 0
    if value < least:
        raise InvalidInput(name, f"must be a size like 512MB, at least {least >> 20}MB")
    return value


def _number(env: Mapping[str, str], name: str, default: int, least: int) -> int:
    text = env.get(name, "").strip()
    if not text:
        return default
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    if not least <= number <= _MOST_COUNT:
        raise InvalidInput(name, f"must be a whole number from {least} to {_MOST_COUNT}")
    return number


_OWN = ("dev", "proc", STEP_DIR[1:])


def _paths(env: Mapping[str, str], name: str) -> tuple[str, ...]:
    paths = [text for text in env.get(name, "").split(os.pathsep) if text]
    for path in paths:
        if not os.path.isabs(path) or os.path.normpath(path) in ("/", "//"):
            raise InvalidInput(name, f"{path!r} is not an absolute path below /")
        if not os.path.exists(path):
            raise InvalidInput(name, f"{path} does not exist")
        if os.path.normpath(path).split("/")[1] in _OWN:
            own = " and ".join(", ".join(f"/{one}" for one in _OWN).rsplit(", ", 1))
            raise InvalidInput(name, f"{path}: every step has {own} of its own; name another path")
    return tuple(os.path.normpath(path) for path in paths)


def switch(env: Mapping[str, str], name: str, default: bool) -> bool:
    """Whether the variable *name* is 1; the variable may be 0 as well. Raises `InvalidInput`."""
    text = env.get(name) or str(int(default))
    if text not in ("0", "1"):
        raise InvalidInput(name, "must be 0 or 1")
    return text == "1"
