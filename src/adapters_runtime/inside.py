"""
Running a Python step in a process that is forked from the spawner: the fork server.

The process is fresh, confined and one step's alone; what it saves is the start of an interpreter,
since the spawner is the interpreter that steps run on. To the step it looks as if it had been
started with `python -I main.py`: its own environment, its own `__main__`, and no module that such
a start would not have brought. Standard library only.
"""

import ctypes
import gc
import io
import os
import signal
import sys
import time
from importlib.machinery import SourceFileLoader
from types import ModuleType, TracebackType
from typing import Any, NoReturn

from adapters_runtime.confine.syscalls import go_on_as_python
from adapters_runtime.leaving import await_threads, leave, take_apart

_fresh: frozenset[str] = frozenset()
_places: tuple[str, ...] = ()
_title = (0, 0)
_INTERRUPTED = -1


def remember_the_start(modules: frozenset[str], places: tuple[str, ...]) -> None:
    """What a fresh interpreter has: the names of its modules, and where it looks for others."""
    global _fresh, _places, _title
    _fresh, _places = modules, places
    with open("/proc/self/stat", "rb") as stat:
        facts = stat.read().rpartition(b")")[2].split()
    _title = int(facts[45]), int(facts[46])  # where the command line begins and ends


def run(job: dict[str, Any]) -> NoReturn:
    """Run the file `argv[-1]` of *job* as the main program, and end with its status."""
    path = job["argv"][-1]
    go_on_as_python()
    _show(*job["argv"], f"WF_EXECUTION_ID={job['env'].get('WF_EXECUTION_ID', '')}")
    _take_environment(job["env"])
    _open_outputs("-u" in job["argv"])
    _restore_signals()
    sys.argv[:] = [path]
    sys.orig_argv[:] = job["argv"]
    packages = job["env"].get("PYTHONPATH")
    sys.path[:] = (packages, *_places) if packages else _places
    main = _become_main(path)
    gc.enable()
    status = _status_of(main, path)
    del main
    if status == _INTERRUPTED:
        _end_interrupted()
    leave(status, _fresh)


def _show(*words: str) -> None:
    """Have the process list say what runs here, over the spawner's own command line."""
    begin, end = _title
    text = "\0".join(words).encode("utf-8", "replace")[: end - begin - 1]
    ctypes.memmove(begin, text.ljust(end - begin, b"\0"), end - begin)


def _take_environment(env: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(env)
    time.tzset()


def _open_outputs(at_once: bool) -> None:
    """With `-u` what is printed leaves at once."""
    if at_once:
        for name, fd in (("stdout", 1), ("stderr", 2)):
            old = getattr(sys, name)
            raw = io.FileIO(fd, "w", closefd=False)
            new = io.TextIOWrapper(raw, old.encoding, old.errors, write_through=True)
            setattr(sys, name, new)
            setattr(sys, f"__{name}__", new)


def _restore_signals() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN)


def _become_main(path: str) -> ModuleType:
    for name in sys.modules.keys() - _fresh:
        del sys.modules[name]
    main = sys.modules["__main__"] = ModuleType("__main__")
    del main.__doc__
    main.__dict__.update(
        __name__="__main__",
        __doc__=None,
        __package__=None,
        __spec__=None,
        __loader__=SourceFileLoader("__main__", path),
        __file__=path,
        __cached__=None,
        __builtins__=sys.modules["builtins"],
        __annotations__={},
    )
    return main


def _status_of(main: ModuleType, path: str) -> int:
    try:
        with open(path, "rb") as file:
            code = compile(file.read(), path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        return _said(error, None)
    try:
        exec(code, main.__dict__)  # noqa: S102 - the step's own code, in its own process
    except SystemExit as asked:
        return _asked(asked.code)
    except BaseException as error:  # whatever the code raises is its end, and is shown as usual
        trace = error.__traceback__
        return _said(error, trace.tb_next if trace else None)
    return 0


def _asked(code: object) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)
    return 1


def _said(error: BaseException, trace: TracebackType | None) -> int:
    error.__traceback__ = trace
    sys.excepthook(type(error), error, trace)
    return _INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1


def _end_interrupted() -> NoReturn:
    """As an interpreter that lets nobody doubt what ended it."""
    await_threads()
    take_apart(_fresh)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)
    raise AssertionError("still here")
