"""Checking definitions in files as `apply` does, with reports for people, programs, code hosts."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from attrs import frozen

from wfcore import __version__
from wfcore.errors import InvalidDefinition, Problem
from wfserver.definitions import scenarios
from wfserver.definitions.read import ENDINGS, STDIN, checked, read_text
from wfserver.failures import explain

_RULE = "definition"


@frozen
class Validated:
    """A file and its mistakes. `name`: the name of the workflow; None if there are mistakes."""

    file: str
    name: str | None
    problems: tuple[Problem, ...] = ()

    def lines(self) -> Sequence[str]:
        """Lines `file:line: path: message`, with which editors find the place."""
        return explain(InvalidDefinition(self.problems, self.file)).splitlines()


def validated(file: str) -> Validated:
    """
    The mistakes of the definition in *file* (`-`: stdin), or of the scenarios in a file with the
    name of scenarios. It does not matter what can run on this machine.

    A file that cannot be read has one problem, which says so: no file is skipped.
    """
    try:
        if file.endswith(ENDINGS):
            return Validated(file, scenarios.load(file).definition.name)
        text = read_text(file)
        return Validated(text.source, checked(text.content, text.source, runs_here=False).name)
    except InvalidDefinition as error:
        return Validated(error.source or file, None, error.problems)
    except OSError as error:
        return Validated(file, None, (Problem("", error.strerror or str(error)),))


def report(found: Sequence[Validated]) -> Mapping[str, Any]:
    """The document of `--json`: the files in *found* with their mistakes."""
    return {
        "ok": not any(one.problems for one in found),
        "files": [
            {
                "file": one.file,
                "name": one.name,
                "problems": [
                    {"path": problem.path, "line": problem.line, "message": problem.message}
                    for problem in one.problems
                ],
            }
            for one in found
        ],
    }


def sarif(found: Sequence[Validated]) -> Mapping[str, Any]:
    """
    The same report as SARIF 2.1.0, which code hosts show beside the changed lines of a pull
    request.

    Paths stay relative to the current folder, as code hosts expect.
    """
    rule = {
        "id": _RULE,
        "shortDescription": {"text": "The workflow definition is not valid"},
        "defaultConfiguration": {"level": "error"},
    }
    driver = {"name": "wfcore", "semanticVersion": __version__, "rules": [rule]}
    results = [_result(one.file, problem) for one in found for problem in one.problems]
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }


def _result(file: str, problem: Problem) -> Mapping[str, Any]:
    message = f"{problem.path}: {problem.message}" if problem.path else problem.message
    place: dict[str, Any] = {"artifactLocation": {"uri": _uri(file)}}
    if problem.line is not None:
        place["region"] = {"startLine": problem.line}
    location: dict[str, Any] = {"physicalLocation": place}
    if problem.path:
        location["logicalLocations"] = [{"fullyQualifiedName": problem.path}]
    return {
        "ruleId": _RULE,
        "ruleIndex": 0,
        "level": "error",
        "message": {"text": message},
        "locations": [location],
    }


def _uri(file: str) -> str:
    if file == STDIN:
        return "stdin"
    path = Path(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())
