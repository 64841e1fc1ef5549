"""The machines, every state against every fact, and what one fold may change."""

from copy import deepcopy
from itertools import product
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wfcore.effects import StopSteps
from wfcore.errors import IllegalMove
from wfcore.machine import Machine
from wfcore.model.approval import ApprovalStatus
from wfcore.model.execution import ExecutionStatus, ReasonCode, StepStatus
from wfcore.model.webhook import WebhookStatus
from wfcore.rules import states
from wfcore.rules.approval.machine import Assented, Decision
from wfcore.rules.execution.fold import advance
from wfcore.rules.execution.machine import (
    EXECUTION,
    CancelAsked,
    ExecutionAborted,
    Fact,
    StepFact,
    StepsCancelled,
    WorkerLost,
)
from wfcore.rules.execution.step_machine import StepState
from wfcore.rules.webhooks import webhook
from wfcore.testing.strategies.runs import FACTS, executions
from wfcore.testing.strategies.values import instants

MACHINES = list(states.MACHINES.values())
ABOUT_STEPS = (StepFact, StepsCancelled, ExecutionAborted, WorkerLost)
MEMBERS = {
    "execution": (ExecutionStatus, get_args(Fact)),
    "step": (StepState, tuple(one for one in get_args(Fact) if issubclass(one, ABOUT_STEPS))),
    "approval": (ApprovalStatus, get_args(Decision | Assented)),
    "webhook": (WebhookStatus, get_args(webhook.Fact)),
}
ONLY_AT_FIRST = {"step": {StepState.SKIPPED}}
"""Ends that are not reached from every state before an end."""
LEGAL = [
    pytest.param(row, fact, id=f"{row.state}-{fact.__name__}")
    for row in EXECUTION.rows
    for fact in get_args(Fact)
    if EXECUTION.row(row.state, fact) is row
]
ILLEGAL = [
    pytest.param(state, fact, id=f"{state}-{fact.__name__}")
    for state in ExecutionStatus
    for fact in get_args(Fact)
    if not EXECUTION.allows(state, fact)
]


def reached(machine: Machine, state) -> set:
    """Every state that some facts lead to from *state*, itself included."""
    found, todo = {state}, [state]
    while todo:
        here = todo.pop()
        following = {row.target for row in machine.rows if row.state == here} - found
        found |= following
        todo += following
    return found


@pytest.mark.parametrize("machine", MACHINES, ids=lambda m: m.name)
def test_the_table_alone_decides(machine):
    """A pair with a row leads to its target, every other pair is an illegal move. EX-9, AP-6."""
    for state, fact in product(*MEMBERS[machine.name]):
        rows = [
            row
            for kind in fact.__mro__
            for row in machine.rows
            if (row.state, row.fact) == (state, kind)
        ]
        assert machine.allows(state, fact) is bool(rows), (state, fact)
        if rows:
            assert machine.target(state, fact) is rows[0].target, (state, fact)
        else:
            with pytest.raises(IllegalMove) as refused:
                machine.target(state, fact)
            assert (refused.value.machine, refused.value.state) == (machine.name, state), fact


@pytest.mark.parametrize("machine", MACHINES, ids=lambda m: m.name)
def test_the_way_to_a_state_leads_there(machine):
    """From the initial state, row by row, and by no more rows than there are states."""
    for state in machine.states:
        here = machine.initial
        for row in machine.way_to(state):
            assert row in machine.rows
            assert row.state is here
            here = row.target
        assert here is state
        assert len(machine.way_to(state)) < len(machine.states)


NEVER_AFTER = {StepState.WAITING_FOR_MAIL: {StepState.REJECTED}}
"""The endings that a state excludes: a step with a mail asks nobody, before or after."""


@pytest.mark.parametrize("machine", MACHINES, ids=lambda m: m.name)
def test_ended_states_have_no_way_out(machine):
    """EX-9, AP-6: no row leaves a final state, and every other state has one."""
    assert {row.state for row in machine.rows} == set(MEMBERS[machine.name][0]) - machine.final


@pytest.mark.parametrize("machine", MACHINES, ids=lambda m: m.name)
def test_every_state_can_be_reached_and_left(machine):
    """No state is unreachable, and every ending is reachable from every state before it."""
    states = set(MEMBERS[machine.name][0])
    assert reached(machine, machine.initial) == states
    for state in states - machine.final:
        ends = (
            machine.final - ONLY_AT_FIRST.get(machine.name, set()) - NEVER_AFTER.get(state, set())
        )
        missing = ends - reached(machine, state)
        assert not missing, f"{machine.name} cannot get from {state} to {missing}"


@pytest.mark.parametrize("machine", MACHINES, ids=lambda m: m.name)
def test_every_fact_has_a_row(machine):
    """No fact is there in vain, and no row is for a fact that nobody could bring."""
    states, facts = MEMBERS[machine.name]
    decides = {machine.row(state, fact) for state in states for fact in facts} - {None}
    assert decides == set(machine.rows)
    for fact in facts:
        assert any(machine.allows(state, fact) for state in states), fact


def test_every_fact_of_an_execution_has_a_strategy():
    """A new fact cannot be forgotten by the properties."""
    assert FACTS.keys() == set(get_args(Fact))


@pytest.mark.parametrize(("row", "kind"), LEGAL)
@settings(max_examples=15)
@given(data=st.data(), now=instants())
def test_a_legal_fact_drives_an_execution_to_its_row_s_target(row, kind, data, now):
    """The fold lands where the table says, numbers its events, and spares its argument. EX-3."""
    run, fact = data.draw(executions(row.state)), data.draw(FACTS[kind])
    as_it_was = deepcopy(run)
    outcome = advance(run, fact, now)
    assert run == as_it_was
    assert outcome == advance(run, fact, now)
    assert outcome.record.status is row.target
    numbers = [event.number for event in outcome.events]
    assert numbers == list(range(run.events + 1, outcome.record.events + 1))
    assert all(event.execution_id == run.id and event.at == now for event in outcome.events)


@pytest.mark.parametrize(("state", "fact"), ILLEGAL)
@settings(max_examples=5)
@given(data=st.data(), now=instants())
def test_an_illegal_fact_is_refused_by_name(state, fact, data, now):
    """EX-9: where the table has no row, nothing is folded; never a silent no-op."""
    run = data.draw(executions(state))
    with pytest.raises(IllegalMove):
        advance(run, data.draw(FACTS[fact]), now)


@pytest.mark.parametrize("state", [s for s in ExecutionStatus if s not in EXECUTION.final])
@given(data=st.data(), now=instants())
def test_cancel_ends_everything_at_once(state, data, now):
    """
    EX-7: what runs, waits or was interrupted becomes CANCELLED; what had ended stays. Not before it
    was accepted, whatever the clock says: EX-30.
    """
    run = data.draw(executions(state))
    outcome = advance(run, CancelAsked(), now)
    ended = outcome.record
    over = max(now, run.accepted_at)
    assert (ended.status, ended.completed_at) == (ExecutionStatus.CANCELLED, over)
    assert ended.status_reason.code is ReasonCode.CANCEL_REQUESTED
    assert (ended.worker, ended.due_at) == (None, None)
    assert (StopSteps(run.id) in outcome.effects) is (run.worker is not None)
    for name, before in run.step_results.items():
        if before.status in (StepStatus.COMPLETED, StepStatus.SKIPPED, StepStatus.FAILED):
            assert ended.step_results[name] == before
        else:
            assert ended.step_results[name].status is StepStatus.CANCELLED
            assert ended.step_results[name].completed_at == max(now, before.started_at or now)
