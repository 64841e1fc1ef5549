"""
The bundled server: settings, composition of the adapters, command line.

The server's packages have plain names, and the first package on the import path wins. A foreign
package of the same name is refused here, before any of its code runs.
"""

import os
from importlib.util import find_spec

_PARTS = ("wfcore", "adapters_http", "adapters_runtime", "adapters_store")


def _require_own(parts: tuple[str, ...]) -> None:
    """Raises `ImportError` for a package that Python would import from another folder."""
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
