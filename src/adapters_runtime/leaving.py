"""
The end of a Python step that was forked: what an interpreter does at its end, for this step alone.

The interpreter's own finalisation takes apart every module and type there is, and in a forked
process each page of them must first be copied: that took longer than a short step does. Here only
what the step brought is taken apart, in the interpreter's order. Where threads of the step go on
behind its end, which the interpreter alone can hold still, it is left to do all. Standard library
only.
"""

import atexit
import ctypes
import gc
import sys
from collections.abc import Container
from types import ModuleType
from typing import Any, NoReturn
from weakref import ref

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
