"""What a definition may say of files of earlier steps."""

import re
from typing import Any

import pytest
import yaml

from adapters_runtime.expressions.templates import MiniJinjaTemplates
from wfcore.errors import InvalidDefinition
from wfcore.model.workflow import CodeStep, Definition
from wfcore.rules.definition.check import check_definition
from wfcore.rules.definition.written import document_of, read_definition

FLOW = """
name: flow
steps:
  - {name: fetch, kind: code, language: bash, source: 'true'}
  - {name: pick, kind: data, value: 1}
  - name: lines
    kind: loop
    items: [1, 2]
    as: line
    steps:
      - {name: split, kind: code, language: bash, source: 'true'}
      - {name: count, kind: code, language: bash, source: 'true', files: [INNER]}
  - name: both
    kind: parallel
    branches:
      - name: a
        steps: [{name: a1, kind: code, language: bash, source: 'true'}]
      - name: b
        steps: [{name: b1, kind: code, language: bash, source: 'true', files: [BRANCH]}]
  - {name: sub, kind: workflow, workflow: other}
  - {name: load, kind: code, language: bash, source: 'true', files: [OUTER]}
  - {name: after, kind: code, language: bash, source: 'true'}
onFailure:
  - {name: tidy, kind: code, language: bash, source: 'true', files: [LAST]}
"""


def read(
    inner: str = "split", branch: str = "fetch", outer: str = "fetch", last: str = "after"
) -> Definition:
    text = FLOW.replace("INNER", inner).replace("BRANCH", branch).replace("OUTER", outer)
    document: Any = yaml.safe_load(text.replace("LAST", last))
    return check_definition(document, MiniJinjaTemplates().problems)


def files_of(definition: Definition, name: str) -> tuple[str, ...]:
    step = definition.step(name)
    assert isinstance(step, CodeStep)
    return step.files


def test_earlier_steps_can_be_named() -> None:
    """FI-1: of the same round and around it, containers with or without `.*`, children."""
    found = read("split, fetch", "lines.*", "lines, both.*, sub, a1", "after, lines")
    assert files_of(found, "count") == ("split", "fetch")
    assert files_of(found, "b1") == ("lines",)
    assert files_of(found, "load") == ("lines", "both", "sub", "a1")
    assert files_of(found, "tidy") == ("after", "lines")
    assert read_definition(document_of(found)).steps == found.steps


@pytest.mark.parametrize(
    ("given", "path", "message"),
    [
        (
            {"outer": "fetsch"},
            "steps[5].files[0]",
            "before this one; did you mean fetch?",
        ),
        ({"outer": "after"}, "steps[5].files[0]", "'after' is no step before this one"),
        ({"outer": "load"}, "steps[5].files[0]", "'load' is no step before this one"),
        ({"outer": "fetch, split"}, "steps[5].files[1]", "'split' is no step before this one"),
        ({"outer": "pick"}, "steps[5].files[0]", "'pick' leaves no files"),
        ({"outer": "fetch.*"}, "steps[5].files[0]", "has no steps in it; write fetch"),
        ({"outer": "''"}, "steps[5].files[0]", "must not be empty"),
        ({"outer": "3"}, "steps[5].files[0]", "must be text"),
        ({"inner": "lines"}, "steps[2].steps[1].files[0]", "'lines' is no step before this one"),
        ({"branch": "a1"}, "steps[3].branches[1].steps[0].files[0]", "is no step before this one"),
        ({"last": "tidi"}, "onFailure[0].files[0]", "is no step before this one"),
    ],
)
def test_a_step_that_is_not_there_is_a_mistake(
    given: dict[str, str], path: str, message: str
) -> None:
    """FI-1: unknown, later, itself, around it, in another branch or without files; by its path."""
    with pytest.raises(InvalidDefinition) as refused:
        read(**given)
    (problem,) = refused.value.problems
    assert problem.path == path
    assert re.search(re.escape(message), problem.message), problem.message


def test_steps_whose_files_are_read_are_known() -> None:
    """FI-4: their files are made ready as they end; a container means the steps in it."""
    found = read("split", "fetch", "both", "sub")
    assert found.steps_read == {"split", "fetch", "both", "a1", "b1", "sub"}
