"""
The fork server: a Python step runs in a process forked from the spawner, whose interpreter is the
interpreter of Python steps.

The step must find the modules, paths, environment, streams and signals of a fresh
`python -I main.py`. The interpreter ends the process (`Py_Exit`): it waits for threads, calls exit
functions, flushes, and takes the modules apart. Three things differ from a fresh interpreter:

- The modules that every step starts with are hidden from the teardown, which would write to, and so
  copy, every page that they share with the spawner.
- The process ends when all modules are gone. The interpreter would then free types and strings one
  by one, which runs no code of the step and takes a third of its time.
- The process list shows the execution. The environment that the kernel shows is the spawner's, so
  an operator could not find the execution otherwise.

Each process runs one step. An interpreter that served several steps would hand on their modules and
memory, and a Python step could read what an earlier step held.
"""

import atexit
import ctypes
import gc
import io
import os
import signal
import sys
import time
from contextlib import suppress
from importlib.machinery import SourceFileLoader
from types import ModuleType, TracebackType
from typing import Any, NoReturn, TextIO

from adapters_runtime.sandbox.isolation.syscalls import go_on_as_python

_fresh: frozenset[str] = frozenset()
_places: tuple[str, ...] = ()
_title = (0, 0)


def remember_the_start(modules: frozenset[str], places: tuple[str, ...]) -> None:
    """Remember the modules and search path of a fresh interpreter."""
    global _fresh, _places, _title
    _fresh, _places = modules, places
    with open("/proc/self/stat", "rb") as stat:
        facts = stat.read().rpartition(b")")[2].split()
    _title = int(facts[45]), int(facts[46])  # where the command line begins and ends


def run(job: dict[str, Any]) -> NoReturn:
    """Run the file `argv[-1]` of *job* as the main program, and exit with its status."""
    path = job["argv"][-1]
    go_on_as_python()
    _show(*job["argv"], f"WF_EXECUTION_ID={job['env'].get('WF_EXECUTION_ID', '')}")
    os.environ.clear()
    os.environ.update(job["env"])
    time.tzset()
    _open_outputs("-u" in job["argv"])
    _restore_signals()
    sys.argv[:] = [path]
    sys.orig_argv[:] = job["argv"]
    packages = job["env"].get("PYTHONPATH")
    sys.path[:] = (packages, *_places) if packages else _places
    statuses: list[int] = []
    atexit.register(_leave, statuses)  # registered first, so called last
    statuses.append(_status_of(_become_main(path), path))
    ctypes.pythonapi.Py_Exit(statuses[-1])
    raise AssertionError("still here")


def _show(*words: str) -> None:
    """Write *words* over the spawner's command line, which the process list shows."""
    begin, end = _title
    text = "\0".join(words).encode("utf-8", "replace")[: end - begin - 1]
    ctypes.memmove(begin, text.ljust(end - begin, b"\0"), end - begin)


def _open_outputs(at_once: bool) -> None:
    """Make prints write at once if *at_once*, as `-u` does."""
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
    gc.enable()
    try:
        with open(path, "rb") as file:
            code = compile(file.read(), path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        return _reported(error, None)
    try:
        exec(code, main.__dict__)  # noqa: S102 - the step's own code, in its own process
    except SystemExit as request:
        return _requested(request.code)
    except BaseException as error:  # whatever the code raises ends it, and is shown as usual
        trace = error.__traceback__
        return _reported(error, trace.tb_next if trace else None)
    return 0


def _requested(code: object) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)
    return 1


def _reported(error: BaseException, trace: TracebackType | None) -> int:
    error.__traceback__ = trace
    sys.excepthook(type(error), error, trace)
    if isinstance(error, KeyboardInterrupt):
        atexit.register(_die_interrupted)
    return 1


def _die_interrupted() -> None:
    """Die of SIGINT, as an interpreter does."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.raise_signal(signal.SIGINT)


def _leave(statuses: list[int]) -> None:
    """
    Hide the modules that every step starts with from the teardown, and exit after it.

    If output cannot be written, nothing changes: the interpreter reports that, with a status of
    its own.
    """
    start = ctypes.py_object([sys.modules.pop(name, None) for name in _fresh - {"__main__"}])
    ctypes.pythonapi.Py_IncRef(start)
    streams = [sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__]
    with suppress(OSError, ValueError, IndexError):  # IndexError: a fork of the step exits
        _flush(streams)
        vars(sys)["_last"] = _Last(statuses[-1], streams)


def _flush(streams: list[TextIO | None]) -> None:
    for stream in streams:
        if stream and not stream.closed:
            stream.flush()


class _Last:
    """The object that the interpreter frees after all modules, when no code of the step can run."""

    def __init__(self, status: int, streams: list[TextIO | None]) -> None:
        self._status = status
        self._streams = streams
        self._flush = _flush
        self._exit = ctypes.PyDLL(None).exit  # of C: buffers and exit functions of libraries, too

    def __del__(self) -> None:
        try:
            self._flush(self._streams)
        finally:
            self._exit(self._status)
