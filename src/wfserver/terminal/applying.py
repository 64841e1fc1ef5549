"""
Applying definitions from a file or a folder: preview, apply, delete workflows that are missing.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from attrs import frozen

from wfcore.errors import InvalidDefinition
from wfcore.model.workflow import Definition, Runtime
from wfcore.usecases.administration import workflows
from wfcore.usecases.administration.operator import MOST_LISTED
from wfserver.definitions.read import (
    SUFFIXES,
    DefinitionText,
    files_beside,
    is_definition,
    read_text,
)
from wfserver.errors import CommandFailed
from wfserver.terminal.invocation import Invocation
from wfserver.terminal.output import clean, put_fields, put_json, put_table, say
from wfserver.terminal.perform import Perform

DIFFERS = 3
"""The exit status of a preview with changes."""


@frozen
class Written:
    """A definition and the text that defines it."""

    text: DefinitionText
    definition: Definition

    @property
    def sent(self) -> str:
        """The text that is sent, without a byte order mark."""
        return self.text.content.decode("utf-8-sig")


def texts_of(
    file: str, *, runs_here: bool, javascript: Runtime = Runtime.NODE
) -> Sequence[Written]:
    """
    The definition in *file*, or all definitions in a folder, hidden files left out.

    Raises `InvalidDefinition` with every mistake in the file, `OSError`, and `CommandFailed` with
    the mistakes of several files, for a folder without definitions, and for a name that occurs
    twice.
    """
    files = [file]
    if Path(file).is_dir():
        files = [str(one) for one in sorted(Path(file).iterdir()) if is_definition(one)]
        if not files:
            raise CommandFailed(f"{file}: holds no definition ({', '.join(SUFFIXES)})")
    found: list[Written] = []
    wrong: list[str] = []
    for one in files:
        text = read_text(one)
        try:
            found.append(Written(text, text.definition(runs_here=runs_here, javascript=javascript)))
        except InvalidDefinition as error:
            if len(files) == 1:
                raise
            wrong.append(str(error))
    if wrong:
        raise CommandFailed("\n".join(wrong))
    _require_unlike(found)
    return found


def _require_unlike(texts: Sequence[Written]) -> None:
    seen: dict[str, str] = {}
    for one in texts:
        name, file = one.definition.name, one.text.source
        if name in seen:
            raise CommandFailed(
                f"{seen[name]} and {file} both define {name!r}; a name stands for one"
            )
        seen[name] = file


def require_tests(file: str) -> None:
    """
    Play the scenarios beside *file*: the scenarios in a folder, or the scenarios named after a
    definition.

    Raises `CommandFailed` if a scenario does not go as expected, `InvalidDefinition` for mistakes
    in the files.
    """
    files = files_beside(file)
    if not files:
        return
    from wfserver.definitions.scenarios import played, unexpected  # a quarter of a second

    found = {path: played(path) for path in files}
    wrong = [line for path, results in found.items() for line in unexpected(path, results)]
    if wrong:
        raise CommandFailed(
            "\n".join((*wrong, "nothing was applied; --no-test applies all the same"))
        )


def missing(perform: Perform, owner: str, texts: Sequence[Written]) -> Sequence[Any]:
    """The workflows of *owner* that no text of *texts* defines."""
    listed = perform(workflows.list_workflows, owner=owner, limit=MOST_LISTED)["items"]
    names = {one.definition.name for one in texts}
    return [one for one in listed if one["name"] not in names and _is_of(one, owner)]


def _is_of(workflow: Any, owner: str) -> bool:
    """Whether *owner*, an id or an email in any case, owns *workflow*."""
    email = workflow["ownerEmail"] or ""
    return workflow["ownerId"] == owner or email.lower() == owner.strip().lower()


def confirm(gone: Sequence[Any]) -> None:
    """Show the workflows to delete and ask. Raises `CommandFailed` if stdin is no terminal."""
    say("not in the folder, and deleted with their triggers:", err=True)
    for one in gone:
        say(clean(f"  {one['name']} ({one['id']}, version {one['version']})"), err=True)
    if not sys.stdin.isatty():
        raise CommandFailed("nothing was changed: give --yes to delete these")
    click.confirm("Delete them?", abort=True, err=True)


def preview(
    invocation: Invocation,
    perform: Perform,
    owner: str,
    texts: Sequence[Written],
    gone: Sequence[Any],
) -> int:
    """Show what applying would change. Returns `DIFFERS` if anything would change, else 0."""
    found = preview_all(perform, owner, texts)
    deleted = [{"id": one["id"], "name": one["name"], "change": "deleted"} for one in gone]
    if invocation.json:
        put_json({"items": [*found, *deleted]})
    else:
        for one in found:
            if one["difference"]:
                say(clean(one["difference"]))
        rows = [(one["name"], one["change"], one.get("version")) for one in (*found, *deleted)]
        put_table(("name", "change", "version"), rows, None)
    return DIFFERS if deleted or any(one["change"] != "unchanged" for one in found) else 0


def preview_all(perform: Perform, owner: str, texts: Sequence[Written]) -> list[Any]:
    """The change that each definition would make. Raises as applying would, but applies nothing."""
    return [_located(perform, workflows.preview_workflow, owner, one) for one in texts]


def apply_all(perform: Perform, owner: str, texts: Sequence[Written]) -> list[Any]:
    """
    Apply all definitions. A definition that fails is tried again after the others, because its
    chains may name workflows that the others define.
    """
    done: dict[str, Any] = {}
    left = list(texts)
    while left:
        failed: list[Written] = []
        for one in left:
            try:
                done[one.text.source] = _located(perform, workflows.apply_workflow, owner, one)
            except (InvalidDefinition, CommandFailed):
                failed.append(one)
                if len(failed) == len(left):
                    raise
        left = failed
    for one in done.values():
        say_warnings(one)
    return [done[one.text.source] for one in texts]


def say_warnings(done: Mapping[str, Any]) -> None:
    """Print the warnings of an applied definition to stderr."""
    for warning in done.get("warnings", ()):
        say(f"warning: {warning}", err=True)


def _located(perform: Perform, operation: Any, owner: str, one: Written) -> Any:
    """Perform *operation*; mistakes that only the store can find are raised with their lines."""
    try:
        return perform(operation, owner=owner, text=one.sent)
    except InvalidDefinition as error:
        raise one.text.located(error) from None


def put_applied(invocation: Invocation, done: Sequence[Any], gone: Sequence[Any]) -> None:
    """Print the results of applying a folder."""
    deleted = [{"id": one["id"], "name": one["name"], "deleted": True} for one in gone]
    if invocation.json:
        put_json({"items": [*done, *deleted]})
        return
    rows = [(one["id"], one["name"], one.get("version", "deleted")) for one in (*done, *deleted)]
    put_table(("id", "name", "version"), rows, None)


def put_one(done: Mapping[str, Any]) -> None:
    """Print the result of applying one file."""
    put_fields({name: value for name, value in done.items() if name != "warnings"})
