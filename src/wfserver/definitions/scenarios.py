"""Files of scenarios: read with the definitions that they name, played, and reported."""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

from attrs import evolve, frozen

from adapters_runtime.cron import CronCalendar
from adapters_runtime.definition_yaml import Lines, load_definition_text, with_lines
from adapters_runtime.expressions.templates import MiniJinjaTemplates
from wfcore.errors import InvalidDefinition, Problem
from wfcore.model.workflow import Definition
from wfcore.rules.paths import below
from wfcore.rules.visible import visible
from wfcore.scenarios.document import (
    Scenario,
    ScenarioFile,
    newest_of,
    read_scenarios,
    step_problems,
)
from wfcore.scenarios.judging import ScenarioResult, mismatches
from wfcore.scenarios.playing import ScenarioParts, ScenarioRun, play
from wfcore.time import DurationMs
from wfserver.definitions.read import read_definition, read_text


@frozen
class Loaded:
    """A file of scenarios and its definitions, ready to play."""

    path: str
    file: ScenarioFile
    definition: Definition
    others: tuple[Definition, ...]
    newest: Mapping[str, Definition]
    lines: Lines

    def scenarios(self) -> Iterator[tuple[int, Scenario]]:
        """Every scenario with its line, and with the stubs of the file that it does not replace."""
        for at, one in enumerate(self.file.scenarios):
            line = self.lines.get(below("scenarios", at), 1)
            yield line, evolve(one, steps={**self.file.steps, **one.steps})

    def run(self, line: int, scenario: Scenario) -> ScenarioResult:
        """The result of playing *scenario*."""
        began = time.perf_counter()
        calendar = CronCalendar()
        parts = ScenarioParts(MiniJinjaTemplates(), calendar)
        runs = play(scenario, self.definition, self.others, parts, self.newest)
        zone = calendar.zone(runs[0].zone)
        wrong = [*_wrong("", scenario.expect, runs[0], zone)]
        for at, (sequel, run) in enumerate(zip(scenario.then, runs[1:], strict=True)):
            wrong += _wrong(below("then", at) + ".", sequel.expect, run, zone)
        seconds = time.perf_counter() - began
        return ScenarioResult(scenario.name, line, tuple(wrong), seconds, _passed(runs))


def _passed(runs: Sequence[ScenarioRun]) -> DurationMs | None:
    """The time from the first start to the last end; None if nothing has ended."""
    ends = [one.run.completed_at for one in runs if one.run and one.run.completed_at is not None]
    return DurationMs(max(ends) - runs[0].started_at) if ends else None


def _wrong(place: str, expect: Mapping[str, Any], run: ScenarioRun, zone: tzinfo) -> Iterator[str]:
    """Everything about one execution that is not as expected, below *place* in the scenario."""
    yield from (f"{place}{problem}" for problem in run.problems)
    for one in mismatches(expect, run, zone):
        yield from evolve(one, path=place + one.path).lines()


def played(path: str, only: str | None = None) -> Sequence[ScenarioResult]:
    """
    The results of the scenarios in the file at *path*. *only*: a text in the names of the scenarios
    to play.

    Raises the errors of `load`.
    """
    loaded = load(path)
    return [
        loaded.run(line, scenario)
        for line, scenario in loaded.scenarios()
        if only is None or only in scenario.name
    ]


_NO_FILES = "names a file, and here is none; `wfcore test` plays it"
MOST_PLAYED = 100
"""The most scenarios of a text that are played at once on a server."""


def played_text(
    text: bytes, definition: Definition, others: Sequence[Definition]
) -> Sequence[ScenarioResult]:
    """
    The results of the scenarios in *text*, played with *definition*, whatever file the text names.
    If the text names workflows, *others* are the workflows that *definition* starts.

    Raises `InvalidDefinition` with every mistake of the text and its line.
    """
    document, lines = load_definition_text(text, "")
    try:
        file = read_scenarios(document)
        if len(file.scenarios) > MOST_PLAYED:
            raise InvalidDefinition((Problem("scenarios", f"at most {MOST_PLAYED} are played"),))
        if named := tuple(Problem(field, _NO_FILES) for field, _ in newest_of(file)):
            raise InvalidDefinition(named)
        others = others if file.workflows else ()
        if problems := step_problems(file, definition, others, {}):
            raise InvalidDefinition(problems)
    except InvalidDefinition as error:
        raise with_lines(error, lines, "") from None
    loaded = Loaded("", file, definition, tuple(others), {}, lines)
    return [loaded.run(line, scenario) for line, scenario in loaded.scenarios()]


def load(path: str) -> Loaded:
    """
    The file of scenarios at *path*, checked with the definitions that it names.

    Raises `InvalidDefinition` with every mistake and its line, `OSError`.
    """
    text = read_text(path)
    document, lines = load_definition_text(text.content, text.source)
    try:
        file = read_scenarios(document)
        folder = Path(path).parent
        definition = _definition(folder, file.definition, "definition")
        others = tuple(
            _definition(folder, name, below("workflows", at))
            for at, name in enumerate(file.workflows)
        )
        newest = {name: _definition(folder, name, field) for field, name in newest_of(file)}
        if problems := step_problems(file, definition, others, newest):
            raise InvalidDefinition(problems)
    except InvalidDefinition as error:
        if error.source:  # the mistakes are those of a definition
            raise
        raise with_lines(error, lines, path) from None
    return Loaded(path, file, definition, others, newest, lines)


def _definition(folder: Path, name: str, field: str) -> Definition:
    try:
        return read_definition(os.fspath(folder / name), runs_here=False)
    except OSError as error:
        message = f"{folder / name}: {error.strerror}; the path is from this file's folder"
        raise InvalidDefinition((Problem(field, message),)) from None


def unexpected(file: str, played: Sequence[ScenarioResult]) -> Iterator[str]:
    """Lines on every scenario that did not go as expected: its place, then the differences."""
    for one in played:
        if one.wrong:
            yield f"{visible(file)}:{one.line}: {visible(one.name)}"
            yield from (f"  {visible(line)}" for line in one.wrong)


def report(ran: Mapping[str, Sequence[ScenarioResult]]) -> Mapping[str, Any]:
    """The document of `--json`: the results in *ran*, by file."""
    return {
        "ok": not any(one.wrong for found in ran.values() for one in found),
        "files": [
            {
                "file": path,
                "scenarios": [
                    {"name": one.name, "line": one.line, "ok": not one.wrong, "wrong": one.wrong}
                    for one in found
                ],
            }
            for path, found in ran.items()
        ],
    }


def junit(ran: Mapping[str, Sequence[ScenarioResult]]) -> bytes:
    """The results in *ran* as JUnit XML, which build servers show."""
    suites = Element("testsuites")
    for path, found in ran.items():
        suite = SubElement(suites, "testsuite", _counts(path, found))
        for one in found:
            seconds = f"{one.seconds:.4f}"
            names = {"classname": path, "name": one.name, "file": path, "line": str(one.line)}
            case = SubElement(suite, "testcase", {**names, "time": seconds})
            if one.wrong:
                failure = SubElement(case, "failure", {"message": visible(one.wrong[0])})
                failure.text = visible("\n".join(one.wrong))
    written: bytes = tostring(suites, encoding="utf-8", xml_declaration=True)
    return written


def _counts(path: str, found: Sequence[ScenarioResult]) -> dict[str, str]:
    return {
        "name": path,
        "tests": str(len(found)),
        "failures": str(sum(bool(one.wrong) for one in found)),
        "errors": "0",
        "time": f"{sum(one.seconds for one in found):.4f}",
    }
