"""
The identity of people, and whether enough people agreed. The checks use accounts and definitions,
and no rule of the core. AP-33 to AP-36, PL-3.
"""

from wfcore.memory.disk import Rows
from wfcore.model.access import Account
from wfcore.model.approval import Approval, Assent
from wfcore.model.workflow import ApprovalStep
from wfcore.testing.simulator.scheduler import Violation


def require(holds: object, kind: str, what: object) -> None:
    """Raise `Violation` of *kind* unless *holds*."""
    if not holds:
        raise Violation(f"{kind}: {what}")


def one_voice_each(approval: Approval, accounts: Rows) -> None:
    """
    Raise `Violation` if a person counts twice (by account, email, link or as the person
    represented), or if a delegate agreed too late.
    """
    heard = [emails_of(one, accounts) for one in approval.assents]
    times, people = sum(map(len, heard)), len(set().union(*heard))
    require(times == people, "two voices", approval.id)
    for one in approval.assents:
        if one.given_for is not None:
            require(one.at < one.given_for.until, "stood in too long", approval.id)


def enough_agreed(approval: Approval, step: object, accounts: Rows) -> None:
    """
    Raise `Violation` if fewer people agreed than *step* demands: humans, people in all, and people
    of each stage.
    """
    if not isinstance(step, ApprovalStep):
        return
    given = [one for one in approval.assents if not one.is_rule]
    require(len(given) >= step.humans, "too few", f"{approval.id}: {len(given)} people")
    if not approval.stages:
        wants = step.required_approvals
        require(len(approval.assents) >= wants, "too few", f"{approval.id} wants {wants}")
    for at, stage in enumerate(approval.stages):
        named = {email_of(name, accounts) for name in stage.approvers}
        count = sum(
            one.stage == at and (one.is_rule or not named.isdisjoint(emails_of(one, accounts)))
            for one in approval.assents
        )
        require(count >= stage.required_approvals, "too few", f"{approval.id} of stage {at}")


def email_of(name: str, accounts: Rows) -> str:
    """The email of the person called *name*, by account, by email or by link."""
    account: Account | None = accounts.get(name)
    return account.email if account else name.removeprefix("mailto:").strip().lower()


def emails_of(assent: Assent, accounts: Rows) -> set[str]:
    """
    The emails of all people behind *assent*: the giver, and the person whom the giver represents.
    """
    names = {assent.by, assent.account}
    if assent.given_for is not None:
        names |= {assent.given_for.by, assent.given_for.account}
    return {email_of(name, accounts) for name in names}
