"""
The command line, or a program, with texts of modules replaced: how a defect is planted.

    python planted.py [MODULE OLD NEW]... -- PROGRAM ARGUMENT...

PROGRAM `wfcore` is the command line, any other a Python file. A text that is not there is an
error: what is planted must not miss.
"""

import importlib.abc
import importlib.machinery
import runpy
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType


class Replacing(SourceFileLoader):
    """Loads a module with texts replaced."""

    changes: Sequence[tuple[str, str]] = ()

    def get_code(self, fullname: str) -> CodeType:
        source = self.get_source(fullname) or ""
        for old, new in self.changes:
            if old not in source:
                raise LookupError(f"{fullname} has no {old!r}")
            source = source.replace(old, new)
        return compile(source, self.path, "exec", dont_inherit=True)


class Planter(importlib.abc.MetaPathFinder):
    """Finds the modules that are to be changed."""

    def __init__(self, planted: Sequence[tuple[str, str, str]]) -> None:
        self.planted = planted

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        changes = [(old, new) for module, old, new in self.planted if module == name]
        spec = PathFinder.find_spec(name, path) if changes else None
        if spec is not None and spec.origin is not None:
            loader = Replacing(name, spec.origin)
            loader.changes = changes
            spec.loader = loader
        return spec


def main(arguments: Sequence[str]) -> None:
    split = arguments.index("--")
    texts, (program, *rest) = arguments[:split], arguments[split + 1 :]
    planted = [(texts[at], texts[at + 1], texts[at + 2]) for at in range(0, split, 3)]
    sys.meta_path.insert(0, Planter(planted))
    sys.argv = [program, *rest]
    if program == "wfcore":
        runpy.run_module("wfserver", run_name="__main__")
    else:
        runpy.run_path(program, run_name="__main__")


main(sys.argv[1:])
