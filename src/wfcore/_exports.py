"""Public names, each loaded on first use; the stub of the package lists them. Decision 52."""

import sys
from collections.abc import Callable
from importlib import import_module
from types import FunctionType

CHECKED = ("wfcore.usecases.", "wfcore.rules.", "wfserver.embedding.")
"""The packages whose public functions get a check of their arguments."""
CHECK_THEMSELVES = ("wfcore.rules.definition.",)
"""The packages whose functions read anything, and say themselves what it should have been."""


def exports(package: str) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """
    `__all__`, `__getattr__` and `__dir__` of *package*, by the lines `from … import name as name`
    of its `__init__.pyi`. Each name is in its list or is an error: for type checkers, too, who
    read the stub and not this.
    """
    spec = sys.modules[package].__spec__
    stub = spec.loader.get_data(f"{spec.origin}i").decode()  # type: ignore[union-attr]
    lines = stub.replace("import (\n", "import").splitlines()  # one that was too long is in two
    words = [line.split() for line in lines if line[:5] == "from "]
    homes = {name: home for _, home, _, name, *_ in words}

    def load(name: str) -> object:
        """A public name: its module is loaded now, and no other."""
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        found: object
        if home == package:  # a package below this one
            found = import_module(f"{home}.{name}")
        else:
            found = getattr(import_module(home), name)
        checked = home.startswith(CHECKED) and not home.startswith(CHECK_THEMSELVES)
        if checked and isinstance(found, FunctionType):
            found = import_module("wfcore.usecases.arguments").checked(found)
        setattr(sys.modules[package], name, found)
        return found

    return sorted(homes), load, lambda: sorted(homes)
