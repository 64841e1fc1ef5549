"""
Walks over the approval and webhook machines. Inherit from a walk to check more.

The folds are `rules.approval.machine.decide` and `rules.webhooks.webhook.moved`.
"""

from typing import Any, ClassVar

from attrs import evolve
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from wfcore.errors import AlreadyDecided
from wfcore.model.approval import Approval, ApprovalStatus, DecisionSource
from wfcore.model.webhook import Webhook, WebhookStatus
from wfcore.rules.approval import machine as rules
from wfcore.rules.approval.machine import (
    APPROVAL,
    Approve,
    Assented,
    Decider,
    Delegate,
    Escalate,
    Expire,
    Reject,
    Revise,
    Withdraw,
    decide,
)
from wfcore.rules.approval.released_rows import original_rows
from wfcore.rules.webhooks import webhook as facts
from wfcore.rules.webhooks.webhook import WEBHOOK, moved
from wfcore.testing.builders import NOW
from wfcore.testing.strategies.values import approvals, webhooks
from wfcore.testing.walks.walking import Facts, TimedWalk


class ApprovalWalk(TimedWalk):
    """
    A walk of an approval from its opening. `Assented` is an assent that is not the last one.

    The walk checks more than the table: people decide before `expires_at`, the timer from then on
    (AP-4); as many people agree as are required, each once (AP-15, AP-16); the person, the time and
    the source of a decision are in the record and in the history, which only grows (AP-12); without
    edits the rows stay (AP-7).
    """

    machine = APPROVAL
    first = st.builds(
        evolve,
        approvals(),
        required_approvals=st.integers(1, 3),
        revise_to=st.just("draft"),
        delegable=st.just(True),
        revisions_left=st.just(1),
    )
    facts: ClassVar = {
        **{fact: st.builds(fact) for fact in APPROVAL.facts if fact is not Delegate},
        Delegate: st.just(Delegate("somebody@example.org", NOW)),
    }
    refusals = (AlreadyDecided,)

    def fold(self, record: Approval, fact: Any) -> Approval:
        decision = Approve() if isinstance(fact, Assented) else fact
        if isinstance(fact, Delegate):
            decision = Delegate(fact.to, record.expires_at)
        return decide(record, decision, voice_of(record, fact), self.now).record

    def fitting(self, fact: type) -> Facts | None:
        over = self.now >= self.record.expires_at
        last = len(self.record.assents) + 1 >= self.record.required_approvals
        possible = {
            Assented: not over and not last,
            Approve: not over and last,
            Reject: not over,
            Delegate: not over,
            Revise: not over,
            Expire: over,
        }
        return self.facts[fact] if possible.get(fact, True) else None

    def prepare(self, fact: type) -> None:
        few = len(self.record.assents) + (2 if fact is Assented else 1)
        if fact in (Approve, Assented):
            self.record = evolve(self.record, required_approvals=few)
        if fact is Expire:
            self.at(self.record.expires_at)

    def check(self, before: Approval, fact: Any, after: Approval) -> None:
        decider = voice_of(before, fact)
        assert after.history[:-1] == before.history
        assert (after.history[-1].at, after.history[-1].by) == (self.now, decider.by)
        assert original_rows(after) == original_rows(before)
        if after.status is ApprovalStatus.PENDING:
            assert after.decided_at is None
            return
        assert (after.decided_at, after.decided_by) == (self.now, decider.by)
        assert after.decision_source is decider.source
        if after.status is ApprovalStatus.APPROVED:
            people = {assent.account for assent in after.assents}
            assert len(people) == len(after.assents) >= after.required_approvals

    @precondition(lambda self: hasattr(self, "record"))
    @rule(early=st.integers(0, 2))
    def the_end_is_near(self, early: int) -> None:
        """Move the clock close to the expiry, where boundary errors show."""
        self.at(self.record.expires_at - early)

    @precondition(lambda self: hasattr(self, "record") and self.now >= self.record.expires_at)
    @rule(decision=st.builds(Approve) | st.builds(Reject) | st.builds(Revise))
    def too_late(self, decision: Any) -> None:
        """After the expiry no person can decide, whether or not a timer has run. AP-4."""
        self.stranger(decision)

    @invariant()
    def it_expires_at_its_instant(self) -> None:
        """An open approval expires exactly at `expires_at`, not a millisecond earlier. AP-4."""
        if hasattr(self, "record"):
            open = self.record.status is ApprovalStatus.PENDING
            over = open and self.now >= self.record.expires_at
            assert rules.expired(self.record, self.now) is over


def voice_of(approval: Approval, decision: Any) -> Decider:
    """The decider: the timer, the end of the execution, or the next person at the API."""
    match decision:
        case Expire() | Escalate():
            return rules.BY_TIMEOUT
        case Withdraw():
            return rules.BY_END
        case _:
            name = f"acc_{len(approval.assents) + 1}"
            return Decider(name, DecisionSource.API, "why", account=name)


class WebhookWalk(TimedWalk):
    """
    A walk of a webhook that is disabled and enabled.

    The walk checks more than the table: a disabled webhook keeps its first reason, and an active
    webhook has none (WH-15); all other fields stay the same.
    """

    machine = WEBHOOK
    first = webhooks().filter(lambda webhook: webhook.status is WebhookStatus.ACTIVE)
    facts: ClassVar = {fact: st.builds(fact) for fact in WEBHOOK.facts}

    def fold(self, record: Webhook, fact: Any) -> Webhook:
        return moved(record, fact, self.now)

    def check(self, before: Webhook, fact: Any, after: Webhook) -> None:
        assert (after.disabled_reason is None) == (after.status is WebhookStatus.ACTIVE)
        if before.status is after.status:
            assert after is before
        elif after.status is WebhookStatus.DISABLED:
            assert after.disabled_reason is facts.REASON[type(fact)]
        assert (after.api_key_id, after.secret_key) == (before.api_key_id, before.secret_key)
