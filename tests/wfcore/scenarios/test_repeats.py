"""Scenarios in which an execution is redriven, or started again with the same inputs. DF-11."""

from pathlib import Path

import pytest

from wfcore.errors import InvalidDefinition
from wfserver.definitions.scenarios import load
from wfserver.failures import explain

from .conftest import Play, wrong

FLOW = """
name: W
variables: {to: {type: string, default: shop@example.org}}
state: {cursor: {type: number, default: 0}}
steps:
  - {name: fetch, kind: code, language: lua, source: x}
  - name: review
    kind: manual_approval
    message: "{{ variables.to }}"
    approvers: [ann@example.org]
  - {name: push, kind: code, language: lua, source: x, files: [fetch]}
  - name: tell
    kind: mail
    to: ["{{ variables.to }}"]
    subject: s
    body: b
output: "{{ steps.push.output }}"
"""
SCENARIOS = """
steps:
  fetch: {output: 1, files: [orders.csv], state: {cursor: 7}}
  push: {fails: no answer}
scenarios:
  - name: the push is repaired
    decisions: [{step: review, decision: approve}]
    expect: {status: FAILED, ran: [fetch, push], mails: [], state: {cursor: 7}}
    then:
      - redrive: {from: push}
        steps: {push: {output: 2}}
        expect:
          plan: {fetch: kept, review: kept, push: again, tell: new}
          status: COMPLETED
          output: 2
          ran: [push]
          approvals: []
          mails: [{step: tell, to: [shop@example.org]}]
          steps: {push: {files: [fetch/orders.csv]}, fetch: {output: 1}}
          state: {cursor: 7}
      - redrive: {}
        expect: {refused: Execution}
      - redrive: {from: review, inputs: {to: ann@example.org}}
        decisions: [{step: review, decision: reject}]
        expect: {plan: {review: asked, push: again}, status: CANCELLED, ran: []}
      - like: {}
        decisions: [{step: review, decision: approve}]
        expect:
          ran: [fetch, push]
          approvals: [{step: review, message: ann@example.org}]
          mails: [{step: tell, to: [ann@example.org]}]
"""


def test_a_scenario_goes_on_after_its_execution(play: Play) -> None:
    """Each repetition follows the execution before; only what it does itself is compared."""
    assert wrong(play(FLOW, SCENARIOS)) == ""


@pytest.mark.parametrize(
    ("written", "instead", "said"),
    [
        ("review: kept", "review: asked", 'then[0].plan.review: expected "asked", was "kept"'),
        ("expect: {refused: Execution}", "expect: {status: FAILED}", "then[1].start: expected an"),
        (
            "decisions: [{step: review, decision: reject}]",
            "decisions: [{step: review, decision: reject}, {step: review, decision: reject}]",
            "then[2].reject of review: no such approval was open then",
        ),
    ],
)
def test_a_difference_names_the_repetition(
    play: Play, written: str, instead: str, said: str
) -> None:
    """By its place in the scenario."""
    assert said in wrong(play(FLOW, SCENARIOS.replace(written, instead)))


def test_a_redrive_may_run_the_newest_definition(play: Play, tmp_path: Path) -> None:
    """Which is applied before the redrive, under the same name."""
    newest = FLOW.replace("name: push", "name: send").replace("steps.push", "steps.send")
    (tmp_path / "newest.yaml").write_text(newest)
    repair = (
        SCENARIOS.partition("    then:")[0]
        + """
    then:
      - redrive: {definition: newest.yaml}
        steps: {send: {output: 3}}
        expect: {plan: {review: kept, send: new, push: gone}, ran: [send], output: 3}
"""
    )
    assert wrong(play(FLOW, repair)) == ""


@pytest.mark.parametrize(
    ("repeat", "said"),
    [
        ("{redrive: {}, like: {}, expect: {ran: []}}", "must have either redrive or like"),
        ("{expect: {ran: []}}", "then[0]: must have either redrive or like"),
        ("{redrive: {}, expect: {nextFires: []}}", "then[0].expect.nextFires: unknown field"),
        ("{redrive: {}, expect: {plan: {push: maybe}}}", "expect.plan.push: unknown value 'maybe'"),
        ("{redrive: {form: push}, expect: {ran: []}}", "form: unknown field; did you mean from?"),
        ("{redrive: {}, steps: {pusk: {}}, expect: {ran: []}}", "pusk: there is no such step"),
        ("{redrive: {definition: no.yaml}, expect: {ran: []}}", "redrive.definition: "),
        ("{redrive: {definition: other.yaml}, expect: {ran: []}}", "must be a definition of 'W'"),
        ("{like: {}, expect: {}}", "then[0].expect: must not be empty"),
    ],
)
def test_mistakes_in_repetitions_have_a_path(tmp_path: Path, repeat: str, said: str) -> None:
    """As everywhere in the file."""
    (tmp_path / "flow.yaml").write_text(FLOW)
    (tmp_path / "other.yaml").write_text(FLOW.replace("name: W", "name: Other", 1))
    head = "definition: flow.yaml\nscenarios:\n  - name: s\n    expect: {ran: []}\n    then:\n"
    file = tmp_path / "flow.test.yaml"
    file.write_text(head + f"      - {repeat}\n")
    with pytest.raises(InvalidDefinition) as refused:
        load(str(file))
    assert said in explain(refused.value)
