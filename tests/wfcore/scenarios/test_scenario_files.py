"""Files of scenarios: mistakes have a line, a path and a fix, and editors know the form. DF-11."""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from adapters_runtime.definition_yaml import load_definition_text
from wfcore.errors import InvalidDefinition
from wfcore.scenarios.document import read_scenarios, scenarios_schema
from wfserver.definitions.scenarios import load
from wfserver.failures import explain

EXAMPLES = Path(__file__).parents[3] / "examples" / "workflows"
VALIDATOR = jsonschema_rs.validator_for(scenarios_schema())
FLOW = """
name: W
steps:
  - {name: fetch, kind: code, language: lua, source: x}
  - {name: review, kind: manual_approval}
  - {name: call, kind: workflow, workflow: Other}
"""
GOOD: dict[str, Any] = {
    "definition": "flow.yaml",
    "steps": {"fetch": [{"fails": "no"}, {"output": 1, "takes": "3s", "usage": {"costUsd": 0.1}}]},
    "scenarios": [
        {
            "name": "s",
            "at": "2026-03-29T09:00:00+02:00",
            "given": {"inputs": {"a": None}, "by": "ann@example.org", "secrets": {"T": "x"}},
            "steps": {"call": {}},
            "decisions": [{"step": "review", "decision": "approve", "rows": {"g": [{"a": 1}]}}],
            "expect": {"status": "COMPLETED", "approvals": [{"step": "review", "after": "3s"}]},
            "then": [
                {"redrive": {"from": "call"}, "steps": {"call": {}}, "expect": {"ran": ["call"]}},
                {"like": {"inputs": {"a": 1}}, "expect": {"status": "COMPLETED"}},
            ],
        }
    ],
}


def test_the_schema_accepts_what_is_read() -> None:
    """It is a JSON Schema, and accepts what the examples and this file write."""
    jsonschema_rs.meta.validate(scenarios_schema())
    read_scenarios(GOOD)
    VALIDATOR.validate(GOOD)
    for path in EXAMPLES.glob("*.test.yaml"):
        document, _ = load_definition_text(path.read_bytes(), path.name)
        read_scenarios(document)
        VALIDATOR.validate(document)


@pytest.mark.parametrize(
    ("written", "instead", "said"),
    [
        ('"definition"', '"definitions"', "definition: is required"),
        ('"scenarios"', '"scenario"', "scenario: unknown field; did you mean scenarios?"),
        ('"fails": "no"', '"fail": "no"', "steps.fetch[0].fail: unknown field; did you mean"),
        ('"takes": "3s"', '"takes": "soon"', "steps.fetch[1].takes: must be a duration"),
        ('+02:00"', '"', "scenarios[0].at: must be an instant with its offset from UTC"),
        ('"approve"', '"accept"', "scenarios[0].decisions[0].decision: unknown value 'accept'"),
        ('[{"a": 1}]', '{"a": 1}', "scenarios[0].decisions[0].rows.g: must be a list"),
        ('"COMPLETED"', '"DONE"', "scenarios[0].expect.status: unknown value 'DONE'"),
        ('"after": "3s"', '"afer": 1', "scenarios[0].expect.approvals[0].afer: unknown field"),
        ('"like": {', '"redrive": {}, "like": {', "then[1]: must have either redrive or like"),
        ('{"inputs": ', '{"input": ', "scenarios[0].given.input: unknown field; did you mean"),
    ],
)  # fmt: skip
def test_mistakes_have_a_path_and_a_fix(written: str, instead: str, said: str) -> None:
    """What the reader refuses it names; the schema refuses it, too."""
    changed = json.loads(json.dumps(GOOD).replace(written, instead, 1))
    with pytest.raises(InvalidDefinition) as refused:
        read_scenarios(changed)
    assert said in explain(refused.value)
    assert not VALIDATOR.is_valid(changed) or "offset" in said


@pytest.mark.parametrize("expect", ["{}", "[]"])
def test_a_scenario_expects_something(expect: str) -> None:
    """One without an expectation would always be right."""
    changed = {**GOOD, "scenarios": [{"name": "s", "expect": json.loads(expect)}]}
    with pytest.raises(InvalidDefinition):
        read_scenarios(changed)
    assert not VALIDATOR.is_valid(changed)


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        ("steps: {fetsh: {}}", ":3: scenarios[0].steps.fetsh: there is no such step; did you mean"),
        ("steps: {review: {}}", "scenarios[0].steps.review: there is no such step; known: fetch"),
        (
            "decisions: [{step: fetch2, decision: reject}]",
            ":3: scenarios[0].decisions[0].step: there is no such step; did you mean fetch?",
        ),
    ],
)
def test_steps_that_are_not_there(tmp_path: Path, scenario: str, said: str) -> None:
    """Stubs and decisions name steps of the definition, which is looked at before anything runs."""
    (tmp_path / "flow.yaml").write_text(FLOW)
    file = tmp_path / "flow.test.yaml"
    whole = f"{{name: s, expect: {{status: FAILED}}, {scenario}}}"
    file.write_text(f"definition: flow.yaml\nscenarios:\n  - {whole}\n")
    with pytest.raises(InvalidDefinition) as refused:
        load(str(file))
    assert f"{file}" in explain(refused.value)
    assert said in explain(refused.value)


def test_a_stub_for_what_is_given(tmp_path: Path) -> None:
    """A workflow that is given runs: its steps are stubbed, not the step that starts it."""
    (tmp_path / "flow.yaml").write_text(FLOW)
    (tmp_path / "other.yaml").write_text(
        FLOW.replace("name: W", "name: Other").replace("Other}", "X}")
    )
    file = tmp_path / "flow.test.yaml"
    scenario = "{name: s, expect: {status: FAILED}, steps: {call: {}}}"
    file.write_text(f"definition: flow.yaml\nworkflows: [other.yaml]\nscenarios: [{scenario}]\n")
    with pytest.raises(InvalidDefinition, match="stub its steps: call/STEP"):
        load(str(file))


def test_mistakes_of_the_definition_are_told_as_its_own(tmp_path: Path) -> None:
    """Where the definition is wrong or missing, that file is named with its line."""
    file = tmp_path / "flow.test.yaml"
    file.write_text("definition: flow.yaml\nscenarios: [{name: s, expect: {status: FAILED}}]\n")
    with pytest.raises(InvalidDefinition) as refused:
        load(str(file))
    assert f"{file}:1: definition: " in explain(refused.value)
    (tmp_path / "flow.yaml").write_text("name: W\nsteps: []\n")
    with pytest.raises(InvalidDefinition) as refused:
        load(str(file))
    assert explain(refused.value).startswith(f"{tmp_path / 'flow.yaml'}:2: steps: ")
