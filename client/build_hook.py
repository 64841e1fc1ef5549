"""The step of a build that writes the generated modules of `wfcore_client` into the source tree."""

import runpy
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class GeneratedModules(BuildHookInterface[Any]):
    """Runs `tools/client/generate.py`, so that a build needs nothing but a checkout."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the modules, with the core and the routes of this checkout."""
        home = Path(self.root).parent
        sys.path.insert(0, str(home / "src"))
        runpy.run_path(str(home / "tools" / "client" / "generate.py"))["write"]()
