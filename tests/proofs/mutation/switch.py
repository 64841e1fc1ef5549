"""
Functions that become their mutants in place.

`mutmut` asks at each call which mutant is wanted, which takes longer than most rules do. In this
process a function gets the code of the mutant instead. What tests start does as `mutmut` wants, and
so do functions with a closure and asynchronous generators.
"""

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any, Final

from mutmut.mutation import trampoline

ORIGINAL = "_mutmut_orig"
_LATER: Final[Any] = trampoline.wrap_in_trampoline
_PLACED: Final[list[tuple[FunctionType, Mapping[str, Any]]]] = []
_EARLY: Final[set[str]] = set()


class Place:
    """A function that can become each of its mutants."""

    def __init__(self, function: FunctionType, mutants: Mapping[str, Any]) -> None:
        self._function = function
        self._mutants = {name: getattr(one, "__func__", one) for name, one in mutants.items()}
        original: FunctionType = self._mutants[ORIGINAL]
        self.name = f"{function.__module__}.{original.__name__.removesuffix('_' + ORIGINAL)}"
        self.early = _full_name(function) in _EARLY
        """Whether it was called while modules were imported, where no mutant is yet."""

    def become(self, mutant: str = ORIGINAL) -> None:
        """Do what *mutant* does."""
        _take(self._function, self._mutants[mutant])

    def watch(self, met: set[str]) -> None:
        """Add the name to *met* at each call."""
        _watch(self._function, self._mutants[ORIGINAL], self.name, met)


def install() -> None:
    """From here on, functions of mutated modules are placed as these are imported."""
    anything: Any = trampoline
    anything.wrap_in_trampoline = _placed


def places(modules: Iterable[str]) -> Mapping[str, Place]:
    """Those of *modules*, by their names; as these are without mutants."""
    for module in modules:
        import_module(module)  # some are only imported when they are needed
    found = {place.name: place for place in (Place(*one) for one in _PLACED)}
    for place in found.values():
        place.become()
    return found


def import_anew(folder: Path) -> None:
    """
    From here on, modules in *folder* are imported once more, and their functions do as `mutmut`
    wants: also while they are imported. For a fork.
    """
    anything: Any = trampoline
    anything.wrap_in_trampoline = _LATER
    for name, module in [*sys.modules.items()]:
        file = getattr(module, "__file__", None) or ""
        if Path(file).is_relative_to(folder) and not name.startswith("mutation"):
            del sys.modules[name]


def _placed(mutants: Mapping[str, Any], is_classmethod: bool = False) -> Callable[[Any], Any]:
    def keep(function: FunctionType) -> Any:
        if function.__closure__ or inspect.isasyncgenfunction(function):
            return _LATER(mutants, is_classmethod)(function)
        _PLACED.append((function, mutants))  # which are to come
        original = FunctionType(function.__code__, function.__globals__)
        _take(original, function)
        _watch(function, original, _full_name(function), _EARLY)
        return function

    return keep


def _full_name(function: FunctionType) -> str:
    return f"{function.__module__}.{function.__qualname__}"


def _watch(function: Any, original: FunctionType, name: str, met: set[str]) -> None:
    generates = inspect.isgeneratorfunction(original)
    waits = inspect.iscoroutinefunction(original)
    signature = inspect.signature(function)
    _take(function, _awaited if waits else _generated if generates else _called)
    function.__signature__ = signature  # cattrs asks a hook for it, while modules are imported
    function.__kwdefaults__ = {"_met": met, "_name": name, "_of": original}


def _take(function: Any, other: Any) -> None:
    function.__code__ = other.__code__
    function.__defaults__ = other.__defaults__
    function.__kwdefaults__ = other.__kwdefaults__
    vars(function).pop("__signature__", None)


def _called(*args: Any, _met: set[str], _name: str, _of: Any, **more: Any) -> Any:
    _met.add(_name)
    return _of(*args, **more)


def _generated(*args: Any, _met: set[str], _name: str, _of: Any, **more: Any) -> Any:
    _met.add(_name)
    return (yield from _of(*args, **more))


async def _awaited(*args: Any, _met: set[str], _name: str, _of: Any, **more: Any) -> Any:
    _met.add(_name)
    return await _of(*args, **more)
