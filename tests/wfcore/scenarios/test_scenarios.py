"""What scenarios play: the real control flow and templates, in virtual time. DF-11."""

import pytest

from .conftest import Play, wrong

RETRIED = """
name: W
steps:
  - {name: send, kind: code, language: bash, source: "true", retry: {attempts: 3, delay: 1h}}
"""


def test_failures_and_retries_take_virtual_time(play: Play) -> None:
    """Each attempt has its own stub, the last one holds on; hours of waiting take no time."""
    ran = play(
        RETRIED,
        """
scenarios:
  - name: the third attempt is good
    steps: {send: [{fails: no}, {fails: no}, {output: 1}]}
    expect: {status: COMPLETED, output: 1, steps: {send: {attempts: 3}}}
  - name: none is
    steps: {send: {fails: no}}
    expect: {status: FAILED, error: "no", reason: STEP_FAILED, steps: {send: {attempts: 3}}}
""",
    )
    assert wrong(ran) == ""


def test_a_step_that_takes_too_long_runs_into_its_timeout(play: Play) -> None:
    """A stub that takes as long as the step's timeout, or longer, ends then and badly."""
    ran = play(
        "name: W\nsteps:\n  - {name: a, kind: code, language: lua, source: x, timeout: 1m}\n",
        """
scenarios:
  - name: just in time
    steps: {a: {takes: 59s, output: ok}}
    expect: {status: COMPLETED, took: 59s}
  - name: too late
    steps: {a: {takes: 2h}}
    expect: {status: FAILED, reason: TIMEOUT, took: 1m, error: timeout of 60 s}
""",
    )
    assert wrong(ran) == ""


LOOP = """
name: W
variables: {orders: {type: array, default: [a, b, c]}}
steps:
  - name: each
    kind: loop
    items: "{{ variables.orders }}"
    as: order
    maxParallel: 2
    steps:
      - name: send
        kind: code
        language: command
        command: [send, "{{ order }}", "{{ loop.index }}"]
        continueOnError: true
output: "{{ steps.each.output }}"
"""


def test_rounds_of_a_loop(play: Play) -> None:
    """A stub holds for every round, or for the round that it names; rounds run side by side."""
    ran = play(
        LOOP,
        """
scenarios:
  - name: two at once
    steps: {send: {output: sent, takes: 10s}, each.1.send: {fails: lost, takes: 10s}}
    expect:
      output: [sent, null, sent]
      took: 20s
      ran: [each.0.send, each.1.send, each.2.send]
      steps:
        each.2.send: {command: [send, c, "2"], variables: {order: c, orders: '["a","b","c"]'}}
        each.1.send: {status: FAILED, error: lost}
""",
    )
    assert wrong(ran) == ""


APPROVAL = """
name: W
steps:
  - name: ask
    kind: manual_approval
    message: "Pay {{ variables.who }}?"
    timeout: 24h
    reminders: [8h]
    approvers: [ann@example.org, bob@example.org]
    requiredApprovals: 2
    allowSelfApproval: false
    groups:
      - name: rows
        rows: "{{ variables.rows }}"
        rowKey: id
        columns: [{key: id, editable: false}, {key: amount, type: number}]
variables: {who: {type: string, required: true}, rows: {type: array, default: [{id: A, amount: 5}]}}
output: "{{ steps.ask.output.groups.rows }}"
"""


def test_approvals_with_edited_rows_and_a_quorum(play: Play) -> None:
    """Rows are edited by the real rules, approvers come in their turn, reminders are told."""
    ran = play(
        APPROVAL,
        """
scenarios:
  - name: both agree to the changed rows
    given: {inputs: {who: Cy}}
    decisions:
      - step: ask
        decision: approve
        by: ann@example.org
        after: 1h
        rows: {rows: [{id: A, amount: 4}]}
      - {step: ask, decision: approve, after: 17h, comment: fine}
    expect:
      status: COMPLETED
      output: [{id: A, amount: 4}]
      took: 17h
      approvals:
        - {step: ask, message: "Pay Cy?", rows: {rows: [{id: A, amount: 5}]}, status: APPROVED,
           by: bob@example.org, approvers: [ann@example.org, bob@example.org], comment: fine}
      notices:
        - {notice: opened, step: ask, to: [ann@example.org, bob@example.org], channels: [mail]}
        - {notice: reminder, step: ask, to: [bob@example.org], after: 16h}
        - {notice: decided, step: ask, after: 17h}
  - name: one says no
    given: {inputs: {who: Cy}}
    decisions: [{step: ask, decision: reject}]
    expect: {status: CANCELLED, reason: APPROVAL_REJECTED}
  - name: nobody comes
    given: {inputs: {who: Cy}}
    expect: {status: CANCELLED, reason: APPROVAL_TIMEOUT, took: 1d}
  - name: nobody approves what they started
    given: {inputs: {who: Cy}, by: ann@example.org}
    decisions:
      - {step: ask, decision: approve, by: ann@example.org, refused: true}
      - {step: ask, decision: approve, by: eve@example.org, refused: true}
      - {step: ask, decision: reject, by: bob@example.org}
    expect: {status: CANCELLED}
  - name: nobody is named
    expect: {refused: who}
""",
    )
    assert wrong(ran) == ""


def test_a_group_of_the_server_is_given(play: Play) -> None:
    """A scenario gives the members of the server's groups; else it says what is missing."""
    ran = play(
        """
name: W
steps:
  - {name: ask, kind: manual_approval, message: Pay, approvers: ["group:finance"],
     requiredApprovals: 2}
""",
        """
scenarios:
  - name: both of the group
    given: {groups: {finance: [ann@example.org, bob@example.org]}}
    decisions: [{step: ask, decision: approve}, {step: ask, decision: approve}]
    expect:
      status: COMPLETED
      approvals: [{step: ask, approvers: [ann@example.org, bob@example.org]}]
  - name: one is too few
    given: {groups: {finance: [ann@example.org]}}
    expect: {status: FAILED}
  - name: no such group
    expect: {refused: "'finance' is no group of approverGroups or of this server"}
""",
    )
    assert wrong(ran) == ""


def test_data_names_who_decides(play: Play) -> None:
    """A template of `approvers` is judged as the approval opens; nobody fails the step. AP-41."""
    ran = play(
        """
name: Flow
variables: {who: {type: array}}
steps:
  - {name: ask, kind: manual_approval, message: Pay, approvers: ["{{ variables.who }}"]}
""",
        """
scenarios:
  - name: a group
    given:
      groups: {finance: [ann@example.org]}
      inputs: {who: ["group:finance"]}
    decisions: [{step: ask, decision: approve}]
    expect: {status: COMPLETED, approvals: [{step: ask, approvers: [ann@example.org]}]}
  - name: an address
    given: {inputs: {who: [bob@example.org]}}
    decisions: [{step: ask, decision: approve}]
    expect: {status: COMPLETED, approvals: [{step: ask, approvers: [bob@example.org]}]}
  - name: nobody
    given: {inputs: {who: []}}
    expect: {status: FAILED}
""",
    )
    assert wrong(ran) == ""


CHILD = """
name: Parent
steps:
  - {name: call, kind: workflow, workflow: Child, inputs: {n: "{{ 1 + 1 }}"}, retry: {attempts: 2}}
output: "{{ steps.call.output }}"
"""
CALLED = """
name: Child
variables: {n: {type: number, required: true}}
steps:
  - {name: work, kind: code, language: python, source: pass}
  - {name: sure, kind: manual_approval}
output: "{{ steps.work.output * variables.n }}"
"""


def test_a_workflow_that_is_not_given_is_a_stub(play: Play) -> None:
    """The step that starts it has the stub; its `retry` starts another one."""
    ran = play(
        CHILD,
        """
scenarios:
  - name: it takes a while
    steps: {call: {output: 7, takes: 3m}}
    expect: {status: COMPLETED, output: 7, ran: [call], took: 3m}
  - name: it fails once
    steps: {call: [{fails: broken}, {output: 8}]}
    expect: {output: 8, steps: {call: {attempts: 2}}}
  - name: it fails
    steps: {call: {fails: broken}}
    expect: {status: FAILED, error: broken, steps: {call: {attempts: 2}}}
""",
    )
    assert wrong(ran) == ""


def test_a_workflow_that_is_given_runs(play: Play) -> None:
    """Its steps are named behind the step that starts it, in stubs, decisions and expectations."""
    ran = play(
        CHILD,
        """
scenarios:
  - name: both together
    steps: {call/work: {output: 21}}
    decisions: [{step: call/sure, decision: approve, after: 1h}]
    expect:
      output: 42
      ran: [call/work]
      took: 1h
      approvals: [{step: call/sure}]
""",
        child=CALLED,
    )
    assert wrong(ran) == ""


def test_nothing_starts_where_only_fires_are_expected(play: Play) -> None:
    """A scenario that expects next fires alone needs no stubs and no inputs."""
    ran = play(
        APPROVAL,
        "scenarios:\n  - {name: never, expect: {nextFires: [2026-03-28T02:30:00+01:00]}}\n",
    )
    assert "nextFires" in wrong(ran)
    assert "who" not in wrong(ran)


BRANCHES = """
name: W
steps:
  - name: both
    kind: parallel
    branches:
      - {name: left, steps: [{name: a, kind: code, language: lua, source: x}]}
      - {name: right, steps: [{name: b, kind: delay, duration: 30d}]}
"""


def test_a_failure_stops_what_runs_beside_it(play: Play) -> None:
    """A failed branch ends the execution, a month's delay with it."""
    ran = play(
        BRANCHES,
        """
scenarios:
  - name: left fails
    steps: {a: {fails: no, takes: 5s}}
    expect: {status: FAILED, took: 5s, steps: {b: {status: CANCELLED}}}
  - name: right waits
    steps: {a: {output: 1}}
    expect: {status: COMPLETED, took: 30d, output: {left: 1, right: null}}
""",
    )
    assert wrong(ran) == ""


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        ("expect: {status: FAILED}", 'status: expected "FAILED", was "COMPLETED"'),
        ("expect: {output: true}", "output: expected true, was 1"),
        ("expect: {took: 1m}", 'took: expected "1m", was "2s"'),
        ("expect: {ran: []}", 'ran: expected [], was ["send"]'),
        ("expect: {error: oh}", 'error: expected a text with "oh", was (none)'),
        ("expect: {steps: {send: {attempts: 2}}}", "steps.send.attempts: expected 2, was 1"),
        ("expect: {approvals: [{step: x}]}", 'approvals: expected [{"step": "x"}], was []'),
        ("expect: {refused: x}", 'refused: expected a text with "x", was (none)'),
    ],
)
def test_what_differs_is_said(play: Play, scenario: str, said: str) -> None:
    """A failure names the field, what was expected and what was."""
    stubs = "steps: {send: {output: 1, takes: 2s}}\n"
    ran = play(RETRIED, f"{stubs}scenarios:\n  - {{name: s, {scenario}}}\n")
    assert said in wrong(ran)


def test_longer_values_are_shown_as_differences(play: Play) -> None:
    """Of a long output the lines that differ are marked."""
    ran = play(
        RETRIED,
        """
scenarios:
  - name: s
    steps: {send: {output: {rows: [{id: 1, text: too long a text to fit in a line}, {id: 2}]}}}
    expect: {output: {rows: [{id: 1, text: too long a text to fit in a line}, {id: 3}]}}
""",
    )
    lines = wrong(ran).splitlines()
    assert lines[0] == "output: (- expected, + was)"
    assert [line.split() for line in lines if line.strip()[:1] in "+-"] == [
        ["-", '"id":', "3"],
        ["+", '"id":', "2"],
    ]


def test_a_step_without_a_stub_is_a_mistake_of_the_scenario(play: Play) -> None:
    """What a step gives is written down: nothing is made up."""
    ran = play(RETRIED, "scenarios:\n  - {name: s, expect: {status: FAILED}}\n")
    assert "send ran and has no stub; say under steps what it gives" in wrong(ran)


def test_a_start_that_was_refused_says_why(play: Play) -> None:
    """Inputs that the definition refuses fail a scenario that did not expect it."""
    ran = play(APPROVAL, "scenarios:\n  - {name: s, expect: {status: COMPLETED}}\n")
    assert wrong(ran) == "start: expected an execution, was refused: inputs.who: is required"


def test_a_decision_that_was_refused_says_why(play: Play) -> None:
    """A decision of somebody who may not decide fails the scenario, unless it says so."""
    ran = play(
        APPROVAL,
        """
scenarios:
  - name: s
    given: {inputs: {who: Cy}}
    decisions: [{step: ask, decision: approve, by: eve@example.org}]
    expect: {status: CANCELLED}
""",
    )
    assert "approve of ask by eve@example.org: refused: " in wrong(ran)


def test_a_decision_that_never_was_due_is_a_mistake(play: Play) -> None:
    """What the scenario decides must be asked: here the approval has expired by then."""
    ran = play(
        APPROVAL,
        """
scenarios:
  - name: s
    given: {inputs: {who: Cy}}
    decisions: [{step: ask, decision: approve, after: 25h}]
    expect: {status: CANCELLED}
""",
    )
    assert wrong(ran) == "approve of ask: no such approval was open then"
