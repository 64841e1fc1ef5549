"""Reading a workflow definition from a file, and checking whether its steps can run here."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
from attrs import evolve, frozen

from adapters_runtime.ai import UNAVAILABLE, is_available, schemas
from adapters_runtime.code.languages import Interpreters
from adapters_runtime.code.typescript import without_types
from adapters_runtime.cron import CronCalendar
from adapters_runtime.definition_yaml import load_definition_text, with_lines
from adapters_runtime.expressions.templates import MiniJinjaTemplates
from wfcore.errors import InvalidDefinition, Problem
from wfcore.model.workflow import AiStep, ChildStep, CodeStep, Definition, Language, Runtime
from wfcore.rules.definition.check import check_definition, language_problems
from wfcore.rules.definition.packages import needs_of, replaced
from wfcore.rules.definition.values import workflow_name
from wfcore.rules.limits import SOURCE_BYTES
from wfcore.rules.paths import below

STDIN = "-"
SUFFIXES = (".yaml", ".yml", ".json")
"""The suffixes of files of definitions."""
ENDINGS = (".test.yaml", ".test.yml", ".test.json")
"""The endings of the names of files of scenarios."""


@frozen
class DefinitionText:
    """The text of a definition, and its name in messages, *source*."""

    content: bytes
    source: str

    def definition(
        self, *, runs_here: bool = True, javascript: Runtime = Runtime.NODE
    ) -> Definition:
        """
        The definition in the text. Raises `InvalidDefinition` with every mistake and its line.
        """
        return checked(self.content, self.source, runs_here=runs_here, javascript=javascript)

    def located(self, error: InvalidDefinition) -> InvalidDefinition:
        """*error*, which only the store can raise, with the lines of its mistakes."""
        _, lines = load_definition_text(self.content, self.source)
        return with_lines(error, lines, self.source)


def read_text(file: str) -> DefinitionText:
    """The text in *file* (`-`: stdin). Raises `OSError` if the file cannot be read."""
    return DefinitionText(_bytes_of(file), "stdin" if file == STDIN else file)


def read_definition(file: str, *, runs_here: bool = True) -> Definition:
    """
    The definition in *file* (`-`: stdin). With *runs_here* its languages must be able to run here.

    Raises `InvalidDefinition` with every mistake, `OSError` if the file cannot be read.
    """
    return read_text(file).definition(runs_here=runs_here)


def checked(
    text: bytes, source: str, *, runs_here: bool = True, javascript: Runtime = Runtime.NODE
) -> Definition:
    """
    The definition in *text*. With *runs_here* its languages must be able to run here. *javascript*:
    the runtime of JavaScript and TypeScript for steps that name no runtime.

    Raises `InvalidDefinition` with every mistake, and its line in *source*.
    """
    document, lines = load_definition_text(text, source)
    try:
        templates, calendar = MiniJinjaTemplates(), CronCalendar()
        definition = check_definition(
            document, templates.problems, calendar.problems, schemas.problems
        )
        if runs_here:
            here = interpreters(javascript)
            _require_runnable(definition, here)
            definition = _as_javascript(definition, here)
    except InvalidDefinition as error:
        raise with_lines(error, lines, source) from None
    return definition


def _require_runnable(definition: Definition, here: Interpreters) -> None:
    """Raises `InvalidDefinition` for steps whose language or extra is not installed here."""
    found = language_problems(definition, _cures(definition, here))
    if not is_available():
        asking = (path for path, step in definition.located() if isinstance(step, AiStep))
        found += tuple(Problem(path, UNAVAILABLE) for path in asking)
    if found:
        raise InvalidDefinition(found)


def children_in(
    folder: Path, definition: Definition, javascript: Runtime = Runtime.NODE
) -> Sequence[Definition]:
    """
    The definitions in *folder* that *definition* starts by name, at any depth. The execution itself
    refuses a name that no file has.

    Raises `InvalidDefinition` for a child with mistakes or that cannot run here, `OSError` for a
    file that cannot be read.
    """
    found: dict[str, Definition] = {definition.name: definition}
    wanted, files = [definition], _files_by_name(folder) if _child_names(definition) else {}
    while wanted:
        for name in _child_names(wanted.pop()) - found.keys() & files.keys():
            found[name] = files[name].definition(javascript=javascript)
            wanted.append(found[name])
    return [one for name, one in found.items() if name != definition.name]


def _child_names(definition: Definition) -> set[str]:
    return {step.workflow for step in definition.walk() if isinstance(step, ChildStep)}


def _files_by_name(folder: Path) -> Mapping[str, DefinitionText]:
    """The texts of definitions in *folder* by the name in each; unreadable files are left out."""
    found: dict[str, DefinitionText] = {}
    for path in sorted(folder.iterdir()):
        if not is_definition(path):
            continue
        try:
            text = read_text(os.fspath(path))
            document, _ = load_definition_text(text.content, text.source)
        except (InvalidDefinition, OSError):
            continue
        if isinstance(document, Mapping) and isinstance(name := document.get("name"), str):
            found.setdefault(workflow_name(name), text)
    return found


def announce_packages(definition: Definition, *, quiet: bool) -> None:
    """Print that packages may be installed, which takes a while."""
    if not quiet and needs_of(definition):
        click.echo("installing the packages of its steps, unless they are here", err=True)


def _as_javascript(definition: Definition, here: Interpreters) -> Definition:
    """
    The definition with JavaScript beside its TypeScript for Node. Bun runs TypeScript itself.

    Raises `InvalidDefinition` for TypeScript of which more than types would have to be removed.
    """
    typed = {
        path: step.source
        for path, step in definition.located()
        if isinstance(step, CodeStep)
        and step.language is Language.TYPESCRIPT
        and here.runtime_of(step.language, step.runtime) is Runtime.NODE
    }
    node = here.find(Language.TYPESCRIPT, Runtime.NODE).path if typed else None
    if node is None:
        return definition
    found = dict(zip(typed, without_types(tuple(typed.values()), node), strict=True))
    problems = tuple(
        Problem(below(path, "source"), one.problem) for path, one in found.items() if one.problem
    )
    if problems:
        raise InvalidDefinition(problems)

    def change(path: str, step: CodeStep) -> CodeStep:
        return evolve(step, javascript=found[path].text) if path in found else step

    return replaced(definition, change)


def interpreters(javascript: Runtime = Runtime.NODE, public: bool = False) -> Interpreters:
    """
    The interpreters on this process's PATH; *public*: only interpreters that every user can run.
    """
    return Interpreters(os.environ.get("PATH") or os.defpath, public, javascript)


def _cures(
    definition: Definition, here: Interpreters
) -> Mapping[tuple[Language, Runtime | None], str]:
    """The programs to install, for each language of *definition* that cannot run here."""
    code = [step for step in definition.walk() if isinstance(step, CodeStep)]
    states = {
        (step.language, step.runtime): here.find(step.language, step.runtime) for step in code
    }
    return {used: state.cure or "" for used, state in states.items() if not state.available}


def _bytes_of(file: str) -> bytes:
    if file == STDIN:
        return sys.stdin.buffer.read(SOURCE_BYTES + 1)
    with Path(file).open("rb") as opened:
        return opened.read(SOURCE_BYTES + 1)


def files_in(paths: Sequence[str]) -> Sequence[str]:
    """The files in *paths*, and the files of scenarios in the folders in *paths*."""
    found: list[str] = []
    for path in paths:
        if Path(path).is_dir():
            found += sorted(os.fspath(one) for one in Path(path).rglob("*") if is_scenarios(one))
        else:
            found.append(path)
    return found


def is_definition(path: Path) -> bool:
    """
    Whether *path* has the name of a definition. A broken link counts: reading fails, so --prune
    deletes nothing.
    """
    named = path.suffix in SUFFIXES and not path.name.startswith(".")
    return named and not path.name.endswith(ENDINGS) and (path.is_file() or path.is_symlink())


def is_scenarios(path: Path) -> bool:
    """Whether *path* is a file with the name of scenarios."""
    return path.name.endswith(ENDINGS) and path.is_file()


def files_beside(path: str) -> Sequence[str]:
    """The files of scenarios in the folder *path*, or of the definition *path* by its name."""
    place = Path(path)
    found = place.iterdir() if place.is_dir() else map(place.with_suffix, ENDINGS)
    return sorted(os.fspath(one) for one in found if is_scenarios(one))
