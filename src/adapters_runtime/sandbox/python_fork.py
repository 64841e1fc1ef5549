"""The fork server: a Python step in a process forked from the spawner, and its end. Decision 55."""

import atexit
import ctypes
import gc
import io
import os
import signal
import sys
import time
from collections.abc import Container
from importlib.machinery import SourceFileLoader
from types import ModuleType, TracebackType
from typing import Any, NoReturn
from weakref import ref

from adapters_runtime.sandbox.isolation.syscalls import go_on_as_python

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


_NOT_FLUSHED = 120


def leave(status: int, start: Container[str]) -> NoReturn:
    """End the process; *start* names the modules that it did not bring."""
    await_threads()
    if len(sys._current_frames()) > 1:
        ctypes.pythonapi.Py_Exit(ctypes.c_int(status))
    if not take_apart(start):
        status = _NOT_FLUSHED
    ctypes.PyDLL(None).exit(ctypes.c_int(status))  # what C libraries have open is written too
    raise AssertionError("still here")


def await_threads() -> None:
    """Wait for all but daemons."""
    if threading := sys.modules.get("threading"):
        threading._shutdown()


def take_apart(start: Container[str]) -> bool:
    """Exit functions, open files, objects; False where the output could not be written."""
    atexit._run_exitfuncs()
    written = all([_flush(sys.stdout, say=True), _flush(sys.stderr, say=False)])
    for name in ("stdin", "stdout", "stderr"):
        setattr(sys, name, getattr(sys, f"__{name}__", None))
    _release(start)
    _flush(sys.stdout, say=False)
    return written


def _flush(stream: Any, say: bool) -> bool:
    try:
        if stream is not None and not stream.closed:
            stream.flush()
    except Exception as error:  # a step's own object, or a pipe that nobody reads any more
        if say:
            is_new = sys.version_info >= (3, 13)
            where = "on flushing sys.stdout" if is_new else f"in: {stream!r}"
            print(f"Exception ignored {where}{':' if is_new else ''}", file=sys.stderr)
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return False
    return True


def _release(start: Container[str]) -> None:
    brought = [name for name in sys.modules if name not in start or name == "__main__"]
    modules = [ref(sys.modules[name]) for name in brought if _is_module(sys.modules[name])]
    for name in brought:
        del sys.modules[name]
    gc.collect()
    for module in filter(None, (one() for one in reversed(modules))):
        _empty(vars(module))
    gc.collect()


def _is_module(value: object) -> bool:
    return isinstance(value, ModuleType)


def _empty(names: dict[str, Any]) -> None:
    """Private names first, as they may need the others."""
    for is_turn in (_is_private, lambda name: name != "__builtins__"):
        for name in list(names):
            if is_turn(name):
                names[name] = None


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")
