"""
wfcore: a workflow engine as a library.

The package is the inside of a hexagon. `model` holds frozen records, `rules` pure functions
and tables over them, `ports` what the outside must supply, `usecases` one unit of work each.
Nothing here knows of HTTP, SQL, clocks or processes; adapters bring those.

The public names (`wfcore.public`) can be had from here: `from wfcore import advance`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from wfcore._homes import HOMES

if TYPE_CHECKING:
    from wfcore.public import *  # noqa: F403

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """A public name: its module is loaded when it is asked for, and no other."""
    home = HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(home), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(HOMES)
