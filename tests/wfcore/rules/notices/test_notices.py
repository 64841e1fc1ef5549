"""How notices are delivered, and whom facts are told to: attempts, digests, addresses."""

import re

import pytest
from attrs import evolve

from wfcore.model.access import AccountStatus, Permission
from wfcore.model.approval import ApprovalStatus, Assent, Delegation
from wfcore.model.notice import Notice, NoticeKind, NoticeStatus
from wfcore.rules.notices.delivery import (
    DELAYS,
    MOST_AT_ONCE,
    QUIET,
    DeliveryChoice,
    attempted,
    digested,
    dropped,
    due_now,
    failed,
    postponed,
    put_off,
    sent,
    tried_again,
)
from wfcore.rules.notices.facts import (
    MAIL,
    OPEN_QUESTIONS,
    approver_ids,
    emails,
    is_wanted,
    notice_id,
    notices,
    of_approval,
    voided,
    without_assent,
)
from wfcore.testing import builders as make
from wfcore.testing.builders import NOW
from wfcore.time import DAY, EpochMs, later

ONE = make.notice()
BUSY = [make.notice(f"ntc_s{n}", status=NoticeStatus.SENT, due_at=None) for n in range(5)]


def lately(count: int, now: EpochMs = NOW) -> list[Notice]:
    """So many sent to the address, a second apart, the last one now."""
    return [
        evolve(one, attempted_at=EpochMs(now - 1_000 * n)) for n, one in enumerate(BUSY[:count])
    ]


def test_a_notice_alone_is_sent_at_once() -> None:
    """NT-6: and so are as many as one address gets in that time."""
    assert due_now(ONE, [ONE], NOW) == DeliveryChoice((), None)
    assert due_now(ONE, [ONE, *lately(4)], NOW) == DeliveryChoice()
    in_vain = [evolve(one, status=NoticeStatus.FAILED) for one in lately(5)]
    assert due_now(ONE, [ONE, *in_vain], NOW) == DeliveryChoice(), (
        "only what was sent makes it quiet"
    )


def test_after_five_messages_an_address_has_its_quiet() -> None:
    """It ends as the first of the five is long enough ago. NT-6."""
    first = EpochMs(NOW - 4_000)
    assert due_now(ONE, [ONE, *lately(5)], NOW) == DeliveryChoice(at=later(first, QUIET))
    ends = later(first, QUIET)
    assert due_now(ONE, [ONE, *lately(5)], EpochMs(ends - 1)).at == ends
    assert due_now(ONE, [ONE, *lately(5)], ends) == DeliveryChoice()


def test_what_is_more_than_five_goes_as_one_digest() -> None:
    """With everything that waits for the address; those that were gathered count, too. NT-6."""
    others = tuple(make.notice(f"ntc_{n}") for n in range(2, 6))
    assert due_now(ONE, [ONE, *others], NOW) == DeliveryChoice()
    assert due_now(ONE, [ONE, *others, *lately(1)], NOW) == DeliveryChoice(others)
    gathered = evolve(others[0], gathered=("ntc_8",))
    assert due_now(ONE, [ONE, gathered, *others[1:]], NOW) == DeliveryChoice(
        (gathered, *others[1:])
    )
    begun = evolve(ONE, gathered=("ntc_7", "ntc_8"), attempts=1)
    assert due_now(begun, [begun, *others[:2]], NOW) == DeliveryChoice()
    assert due_now(begun, [begun, *others[:3]], NOW) == DeliveryChoice(others[:3])


def test_a_digest_takes_only_what_waits() -> None:
    """Nothing that may have arrived, and nothing that is over. NT-4, NT-6."""
    waits, late = make.notice("ntc_2"), evolve(ONE, due_at=later(NOW, 1))
    at_address = [late, waits, make.notice("ntc_3", sending=True), *lately(1)]
    assert due_now(late, at_address, NOW) == DeliveryChoice((waits,)), (
        "put off once: with all there is"
    )
    again = evolve(late, attempts=1)
    assert due_now(again, [again, waits], NOW) == DeliveryChoice(), "an attempt has set its time"


def test_after_an_attempt_of_unknown_outcome_the_same_is_sent_again() -> None:
    """At once, and nothing more with it. NT-4."""
    begun = attempted(ONE, (), NOW)
    waiting = [make.notice(f"ntc_{n}") for n in range(2, 9)]
    assert due_now(begun, [begun, *waiting, *lately(5)], NOW) == DeliveryChoice()


@pytest.mark.parametrize(("attempts", "wait"), [*enumerate([*DELAYS, DELAYS[-1]])])
def test_an_attempt_is_on_record_before_it_is_made(attempts: int, wait: int) -> None:
    """With the instant of the next one, and with all that it tells. NT-4, NT-6."""
    others = (make.notice("ntc_2", gathered=("ntc_3",)), make.notice("ntc_4"))
    begun = attempted(evolve(ONE, attempts=attempts, gathered=("ntc_9",)), others, NOW)
    assert (begun.attempts, begun.attempted_at, begun.sending) == (attempts + 1, NOW, True)
    assert begun.due_at == later(NOW, wait)
    assert begun.gathered == ("ntc_9", "ntc_2", "ntc_3", "ntc_4")
    assert begun.status is NoticeStatus.DUE


def test_attempts_are_a_minute_to_two_hours_apart() -> None:
    """The numbers of the rules, said a second time. NT-4, NT-6."""
    assert [one // 60_000 for one in DELAYS] == [1, 5, 30, 120]
    assert (MOST_AT_ONCE, QUIET) == (5, 600_000)


def test_what_is_over_is_not_due() -> None:
    """Sent, digested, dropped: none of them is tried again. NT-4 to NT-6."""
    begun = evolve(attempted(ONE, (), NOW), last_error="busy")
    over = [sent(begun), digested(begun, make.notice("ntc_9")), dropped(begun, "decided")]
    assert [one.due_at for one in over] == [None] * 3
    assert [one.sending for one in over] == [False] * 3
    assert [(one.status, one.last_error, one.digest) for one in over] == [
        (NoticeStatus.SENT, None, None),
        (NoticeStatus.DIGESTED, None, "ntc_9"),
        (NoticeStatus.DROPPED, "decided", None),
    ]


def test_after_the_fifth_failure_it_is_given_up() -> None:
    """Until then it is due as its attempt said. NT-4."""
    for attempts in (4, 5):
        begun = evolve(attempted(ONE, (), NOW), attempts=attempts)
        after = failed(begun, "busy")
        assert (after.sending, after.last_error) == (False, "busy")
        given_up = attempts > 4
        assert after.status is (NoticeStatus.FAILED if given_up else NoticeStatus.DUE)
        assert after.due_at == (None if given_up else begun.due_at)
    at_once = failed(attempted(ONE, (), NOW), "no such room", for_good=True)
    assert (at_once.status, at_once.due_at) == (NoticeStatus.FAILED, None)


def test_who_says_when_to_come_again_is_asked_then() -> None:
    """The attempt does not count; after a day it is given up all the same. NT-4."""
    begun = attempted(evolve(ONE, attempts=2), (), NOW)
    last = later(ONE.created_at, DAY)
    after = postponed(begun, "later", last)
    assert (after.attempts, after.due_at, after.last_error) == (2, last, "later")
    assert (after.sending, after.status) == (False, NoticeStatus.DUE)
    over = postponed(begun, "later", later(last, 1))
    assert (over.status, over.last_error, over.due_at) == (NoticeStatus.FAILED, "later", None)


def test_a_notice_that_was_given_up_is_tried_again_at_once() -> None:
    """With all of its attempts before it. NT-7."""
    over = failed(evolve(attempted(ONE, (), NOW), attempts=5), "busy")
    day = later(NOW, DAY)
    again = tried_again(over, day)
    assert (again.status, again.due_at, again.attempts) == (NoticeStatus.DUE, day, 0)
    assert put_off(again, later(day, 7)) == evolve(again, due_at=later(day, 7))


# Whom facts are told to.


def test_a_fact_at_an_address_is_one_notice() -> None:
    """Its id is made of them, and of nothing that one of them could feign. NT-1."""
    opened = NoticeKind.APPROVAL_OPENED
    ids = [
        notice_id(opened, MAIL, "a@example.org", "appr_1"),
        notice_id(opened, "room", "a@example.org", "appr_1"),
        notice_id(opened, MAIL, "b@example.org", "appr_1"),
        notice_id(opened, MAIL, "a@example.org", "appr_2"),
        notice_id(opened, MAIL, "a@example.org", "appr_1", 1),
        notice_id(opened, MAIL, "a@example.orgappr_1"),
        notice_id(NoticeKind.APPROVAL_REMINDER, MAIL, "a@example.org", "appr_1"),
    ]
    assert len({*ids}) == len(ids)
    assert all(re.fullmatch("ntc_[0-9a-f]{32}", one) for one in ids)
    assert ids[0] == notice_id(opened, MAIL, "a@example.org", "appr_1")
    kept = "ntc_f374114db4dafbb1eacac4c258134663"
    assert ids[4] == kept, "also after an update: or everybody is told a second time"


def test_a_mail_to_each_person_and_one_message_to_each_room() -> None:
    """Each once, however the address is written. NT-1, NT-3."""
    approval = make.approval()
    people = (" Ann@Example.org", "ann@example.org", "bob@example.org")
    told = of_approval(NoticeKind.APPROVAL_OPENED, approval, ("room", MAIL, "room"), people, NOW, 2)
    assert [(one.channel, one.to) for one in told] == [
        ("room", ""),
        (MAIL, "ann@example.org"),
        (MAIL, "bob@example.org"),
    ]
    assert told[1] == Notice(
        id=notice_id(NoticeKind.APPROVAL_OPENED, MAIL, "ann@example.org", approval.id, 2),
        kind=NoticeKind.APPROVAL_OPENED,
        channel=MAIL,
        to="ann@example.org",
        subject=approval.id,
        created_at=NOW,
        due_at=NOW,
        execution_id=approval.execution_id,
    )
    assert not of_approval(told[0].kind, approval, ("room",), people, NOW, rooms=False)
    assert len(notices(NoticeKind.TEST, "s", ("room",), (), NOW)) == 1
    alone = notices(
        NoticeKind.APPROVAL_DECIDED, "s", ("room", MAIL), people, NOW, rooms=False, about={"a": 1}
    )
    assert [(one.channel, one.about, one.execution_id) for one in alone] == [
        (MAIL, {"a": 1}, None)
    ] * 2


def test_who_is_asked() -> None:
    """The named ones; else both owners and editors, but the starter who may not approve. AP-18."""
    approval = make.approval(workflow_owner_id="acc_1", owner_id="acc_2")
    shares = [
        make.share(account_id="acc_3", permission=Permission.EDIT),
        make.share(account_id="acc_4", permission=Permission.EXECUTE),
        make.share(account_id="acc_1", permission=Permission.EDIT),
    ]
    assert approver_ids(approval, shares, NOW) == ("acc_1", "acc_2", "acc_3")
    others = evolve(approval, allow_self_approval=False)
    assert approver_ids(others, shares, NOW) == ("acc_1", "acc_3")
    named = evolve(approval, approvers=(" acc_9 ", " ", "x@example.org"))
    assert approver_ids(named, shares, NOW) == ("acc_9", "x@example.org")
    let = evolve(named, delegations=(Delegation("", "acc_9", "y@example.org", later(NOW, 1)),))
    assert approver_ids(let, shares, NOW) == ("acc_9", "x@example.org", "y@example.org")
    assert approver_ids(let, shares, later(NOW, 1)) == ("acc_9", "x@example.org")


def test_addresses_are_those_of_active_accounts_and_of_emails() -> None:
    """Each once, in lower case; ids without an account have none. NT-3."""
    accounts = {
        "acc_1": make.account("acc_1", email="Ann@Example.org"),
        "acc_2": make.account("acc_2", status=AccountStatus.LOCKED),
        "gone@example.org": make.account("acc_3", status=AccountStatus.DISABLED),
    }
    names = ("acc_1", "ANN@example.org", "acc_2", "acc_7", "gone@example.org", "B@example.org")
    assert emails(names, accounts) == ("ann@example.org", "b@example.org")


ASSENTED = make.approval(assents=(Assent("Ann@Example.org", "acc_1", NOW),))


def test_a_yes_is_not_asked_for_again_until_rows_change() -> None:
    """AP-16, AP-17: then those who agreed to others are told."""
    assert without_assent(ASSENTED, ("ANN@example.org", "bob@example.org")) == ("bob@example.org",)
    for_bob = Delegation("Bob@example.org", "acc_2", "DAN@example.org", later(NOW, 1))
    let = evolve(ASSENTED, delegations=(for_bob,))
    people = ("bob@example.org", "dan@example.org")
    assert without_assent(let, people) == people
    said = evolve(let, assents=(Assent("dan@example.org", "acc_4", NOW, given_for=for_bob),))
    assert without_assent(said, people) == (), "the delegate's voice is that of both"
    gone = Assent("gone", "acc_3", NOW)
    stays = Assent("bob@example.org", "acc_2", NOW)
    before = evolve(ASSENTED, assents=(*ASSENTED.assents, stays, gone))
    assert voided(before, evolve(before, assents=(stays,))) == ("ann@example.org",)


@pytest.mark.parametrize("kind", NoticeKind)
def test_nobody_is_asked_what_is_decided_or_over(kind: NoticeKind) -> None:
    """NT-5: what tells of a fact is told all the same."""
    asks = kind in OPEN_QUESTIONS
    assert asks == (kind.name in ("APPROVAL_OPENED", "APPROVAL_REMINDER", "APPROVAL_VOIDED"))
    notice = make.notice(kind=kind, to="bob@example.org")
    over, both = ASSENTED.expires_at, ("ann@example.org", "bob@example.org")
    assert is_wanted(notice, ASSENTED, both, EpochMs(over - 1))
    assert is_wanted(evolve(notice, to=""), ASSENTED, both, NOW), "a room is asked by nobody's name"
    for unwanted in (
        is_wanted(notice, None, both, NOW),
        is_wanted(notice, evolve(ASSENTED, status=ApprovalStatus.APPROVED), both, NOW),
        is_wanted(notice, ASSENTED, both, over),
        is_wanted(evolve(notice, to="ann@example.org"), ASSENTED, both, NOW),
        is_wanted(notice, ASSENTED, ("ann@example.org",), NOW),
    ):
        assert unwanted is not asks
