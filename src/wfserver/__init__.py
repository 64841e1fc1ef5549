"""
The bundled server: settings, composition of the adapters, command line.

The packages that it is made of have plain names, and the first one on the import path wins. One of
the same name elsewhere is refused here, before anything of it runs (decision 122).
"""

import os
from importlib.util import find_spec

_PARTS = ("wfcore", "adapters_http", "adapters_runtime", "adapters_store")


def _require_own(parts: tuple[str, ...]) -> None:
    """Raises `ImportError` for a package that Python would not take from beside this one."""
    ours = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    for name in parts:
        spec = find_spec(name)
        found = spec.origin if spec is not None else None
        if os.path.dirname(os.path.dirname(os.path.realpath(found or ""))) != ours:
            raise ImportError(
                f"{name} is imported from {found or 'nowhere'}, but the one that belongs to wfcore "
                f"is in {ours}: rename the other package, or take its folder off PYTHONPATH",
                name=name,
                path=found,
            )


_require_own(_PARTS)
