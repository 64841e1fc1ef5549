"""Signed releases: a passkey confirms, and every attack on that; over both stores."""

import asyncio
from typing import Any

import pytest
from attrs import define, evolve, field

from adapters_runtime.passkeys import WebAuthnPasskeys
from tests.support.authenticator import PARTY, PRESENT, URL, Authenticator, flipped
from wfcore.errors import (
    AlreadyDecided,
    Conflict,
    Forbidden,
    InvalidInput,
    ItemsChanged,
    NotConfirmed,
    NotFound,
    PasskeyNeeded,
)
from wfcore.model.access import OPERATOR, ApiKey, Guest, Principal, Scope
from wfcore.model.approval import Approval, ApprovalStatus, DecisionSource
from wfcore.model.passkey import Assertion, Passkey
from wfcore.model.workflow import Assurance
from wfcore.rules.approval.agreement import items_hash
from wfcore.rules.approval.machine import Approve, Choice, Reject
from wfcore.rules.receipt import receipt_fault
from wfcore.time import MINUTE
from wfcore.usecases.accounts import passkeys
from wfcore.usecases.accounts.accounts import set_account
from wfcore.usecases.accounts.sessions import put_session
from wfcore.usecases.approvals import approvals, deciding
from wfcore.usecases.approvals.confirming import ConfirmationRequest, begin_confirmation
from wfcore.usecases.approvals.deciding import Decide
from wfcore.usecases.approvals.delegating import delegate_approval
from wfcore.usecases.audit.auditing import UNKNOWN, read_audit
from wfcore.usecases.services import Policy

from .conftest import World, code, review

ROWS = [{"id": 1, "amount": 10.5}, {"id": 2, "amount": 2**53 + 1}]
VERIFIES = WebAuthnPasskeys().verifies


@pytest.fixture
def signing(world: World) -> World:
    """A world whose server has passkeys."""
    policy = Policy(public_url=URL)
    services = evolve(world.services, passkeys=WebAuthnPasskeys(), policy=policy)
    return evolve(world, services=services)


@define
class Person:
    """An account that is signed in, with a passkey."""

    world: World
    who: Principal
    session: str
    key: Authenticator = field(factory=Authenticator)

    async def register(self, key: Authenticator | None = None, **other: Any) -> Passkey:
        """A passkey, registered a moment before whatever comes next."""
        asked = await passkeys.begin_registration(self.world.services, self.who)
        answer = (key or self.key).register(asked.nonce.token, asked.nonce.challenge, **other)
        made = await passkeys.register_passkey(
            self.world.services, self.who, self.session, answer, "a key", UNKNOWN
        )
        self.world.clock.advance(1)
        return made

    async def begin(self, *decisions: Decide) -> ConfirmationRequest:
        return await begin_confirmation(self.world.services, self.who, decisions)

    def sign(self, asked: ConfirmationRequest, **other: Any) -> tuple[Assertion, list[str]]:
        (choice,) = [one for one in asked.choices if one.passkey.id == self.key.credential_id]
        return self.key.sign(asked.nonce.token, choice.challenge, **other), list(choice.digests)

    async def take(self, answer: Assertion, digests: list[str]) -> passkeys.Confirmed:
        return await passkeys.take_confirmation(
            self.world.services, self.who, answer, digests, UNKNOWN
        )

    async def approve(self, decision: Decide) -> Approval:
        """Confirm and decide, as the page does."""
        confirmed = await self.take(*self.sign(await self.begin(decision)))
        return await self.decide(evolve(decision, confirmed=confirmed))

    async def decide(self, decision: Decide) -> Approval:
        return await deciding.decide_approval(self.world.services, self.who, decision)


async def signed_in(world: World, name: str, **key: Any) -> Person:
    who = await world.account(f"{name}@example.org")
    async with world.services.store.unit() as unit:
        begun = put_session(world.services, unit, who.account, None)
        await unit.commit()
    person = Person(world, who, begun.token, Authenticator(**key))
    await person.register()
    return person


async def opened(world: World, who: Principal, **step: Any) -> Approval:
    """An open approval of ROWS that a passkey must confirm."""
    asks = review(ROWS, assurance=Assurance.PASSKEY, **step)
    run_id = await world.start(who, await world.workflow(who, asks, code("after")))
    await world.take()
    (approval,) = await approvals.approvals_of(world.services, who, run_id)
    return approval


def deed(approval: Approval, choice: Choice | None = None, **more: Any) -> Decide:
    more = {"items_hash": items_hash(approval), "comment": "seen", **more}
    return Decide(approval.id, choice or Approve(), DecisionSource.CONSOLE, **more)


async def now(world: World, approval: Approval) -> Approval:
    return await approvals.read_approval(world.services, OPERATOR, approval.id)


async def refused(work: Any, *words: str) -> None:
    with pytest.raises(NotConfirmed) as error:
        await work
    assert all(word in str(error.value) for word in words), str(error.value)


@pytest.mark.parametrize("algorithm", [-7, -8, -257])
async def test_a_passkey_releases_exactly_the_rows_that_were_shown(
    signing: World, algorithm: int
) -> None:
    """The receipt is in the history and in the step's output, and fits by itself. SR-1, SR-2."""
    ann = await signed_in(signing, "ann", algorithm=algorithm)
    approval = await opened(signing, ann.who)
    edited = [{"id": 2, "amount": 7}]
    after = await ann.approve(deed(approval, Approve({"rows": edited})))
    assert after.status is ApprovalStatus.APPROVED
    _, (job,) = await signing.take()
    output = job.context["steps"]["review"]["output"]
    (document,) = output["receipts"]
    statement = document["statement"]
    assert statement["itemsHash"] == items_hash(after) != items_hash(approval)
    assert (statement["approvalId"], statement["comment"]) == (approval.id, "seen")
    assert (statement["accountId"], statement["rpId"]) == (ann.who.account.id, PARTY.id)
    receipt = after.history[-1].receipt
    assert receipt is not None
    assert receipt_fault(receipt, VERIFIES) is None


async def test_without_a_passkey_nothing_is_released(signing: World) -> None:
    """A key, a guest without an account and the command line are refused with the page. SR-6."""
    ann = await signed_in(signing, "ann")
    approval = await opened(signing, ann.who, approvers=("ann@example.org", "eva@example.org"))
    scopes = frozenset({Scope.APPROVAL_RESPOND})
    key = ApiKey("key_9", ann.who.account.id, "a key", scopes, "", approval.created_at)
    for who in (evolve(ann.who, key=key), Guest("eva@example.org", approval.id), OPERATOR):
        with pytest.raises(PasskeyNeeded, match=f"{URL}/approvals/{approval.id}"):
            await deciding.decide_approval(signing.services, who, deed(approval))
    await refused(ann.decide(deed(approval)), "without a passkey")
    assert (await now(signing, approval)).status is ApprovalStatus.PENDING


async def test_rejecting_needs_no_passkey(signing: World) -> None:
    """Only what lets something out is signed. SR-1."""
    ann = await signed_in(signing, "ann")
    approval = await opened(signing, ann.who)
    after = await ann.decide(deed(approval, Reject()))
    assert after.status is ApprovalStatus.REJECTED


async def test_a_confirmation_counts_once(signing: World) -> None:
    """The same signed answer again, later or at the same moment, is refused. SR-3."""
    ann = await signed_in(signing, "ann", counts=False)
    one = await opened(signing, ann.who)
    answer, digests = ann.sign(await ann.begin(deed(one)))
    results = await asyncio.gather(
        *(ann.take(answer, digests) for _ in range(5)), return_exceptions=True
    )
    assert sum(isinstance(each, passkeys.Confirmed) for each in results) == 1
    await refused(ann.take(answer, digests), "used already")


async def test_a_confirmation_is_of_one_decision(signing: World) -> None:
    """Other rows, another comment, another approval: each is not what was signed. SR-3."""
    ann = await signed_in(signing, "ann")
    one, other = await opened(signing, ann.who), await opened(signing, ann.who)
    confirmed = await ann.take(*ann.sign(await ann.begin(deed(one))))
    for attempt in (
        deed(other),
        deed(one, comment="other words"),
        deed(one, Approve({"rows": [{"id": 1, "amount": 99}]})),
    ):
        await refused(ann.decide(evolve(attempt, confirmed=confirmed)), "what was signed")
    assert (await ann.decide(evolve(deed(one), confirmed=confirmed))).status.value == "APPROVED"


async def test_rows_that_change_after_signing_are_not_released(signing: World) -> None:
    """Somebody edits between the gesture and the decision: it is 409, as ever. SR-3, AP-19."""
    ann, bob = await signed_in(signing, "ann"), await signed_in(signing, "bob")
    both = {"approvers": ("ann@example.org", "bob@example.org"), "required_approvals": 2}
    approval = await opened(signing, ann.who, **both)
    confirmed = await ann.take(*ann.sign(await ann.begin(deed(approval))))
    await bob.approve(deed(approval, Approve({"rows": ROWS[:1]})))
    with pytest.raises(ItemsChanged):
        await ann.decide(evolve(deed(approval), confirmed=confirmed))


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"flags": PRESENT}, "did not verify the person"),
        ({"flags": 0}, "did not verify the person"),
        ({"origin": "https://evil.example"}, "another address"),
        ({"origin": "http://flows.example.org"}, "another address"),
        ({"origin": "https://sub.flows.example.org"}, "another address"),
        ({"origin": "https://flows.example.org:8443"}, "another address"),
        ({"origin": "https://flows.example.org."}, "another address"),
        ({"origin": "https://FLOWS.example.org"}, "another address"),
        ({"origin": "https://flows.example.org/"}, "another address"),
        ({"origin": "https://flows.example.org@evil.example"}, "another address"),
        ({"origin": "https://fl\u043ews.example.org"}, "another address"),
        ({"origin": "null"}, "another address"),
        ({"origin": "https://["}, "not written as browsers"),
        ({"origin": None}, "another address"),
        ({"cross": True}, "another address"),
        ({"type": "webauthn.create"}, "no confirmation"),
    ],
)
async def test_an_answer_of_another_place_or_kind_is_refused(
    signing: World, other: dict[str, Any], says: str
) -> None:
    """Origin, host, kind and user verification are part of what is signed. SR-3."""
    ann = await signed_in(signing, "ann")
    approval = await opened(signing, ann.who)
    await refused(ann.take(*ann.sign(await ann.begin(deed(approval)), **other)), says)


async def test_another_challenge_is_refused(signing: World) -> None:
    """An answer for one list of digests confirms no other list. SR-3."""
    ann = await signed_in(signing, "ann")
    one, other = await opened(signing, ann.who), await opened(signing, ann.who)
    answer, digests = ann.sign(await ann.begin(deed(one)))
    _, others = ann.sign(await ann.begin(deed(other)))
    await refused(ann.take(answer, others), "confirms something else")
    await refused(
        ann.take(evolve(answer, signature=flipped(answer.signature)), digests), "signature"
    )


async def test_a_counter_that_goes_back_is_a_copy(signing: World) -> None:
    """A passkey that counts must count on; one that does not count sends 0. SR-3."""
    ann = await signed_in(signing, "ann")
    approval = await opened(signing, ann.who)
    await ann.take(*ann.sign(await ann.begin(deed(approval))))
    ann.key.counter = 0
    await refused(ann.take(*ann.sign(await ann.begin(deed(approval)))), "counter went back")


async def test_a_removed_passkey_confirms_nothing(signing: World) -> None:
    """Also if the request was made before; what it signed stays valid. SR-5."""
    ann = await signed_in(signing, "ann")
    one, other = await opened(signing, ann.who), await opened(signing, ann.who)
    after = await ann.approve(deed(one))
    asked = await ann.begin(deed(other))
    id = ann.key.credential_id
    account = ann.who.account.id
    await passkeys.remove_passkey(signing.services, ann.who, account, id, UNKNOWN, ann.session)
    await refused(ann.take(*ann.sign(asked)), "was removed")
    await refused(ann.begin(deed(other)), "no passkey")
    receipt = after.history[-1].receipt
    assert receipt is not None
    assert receipt_fault(receipt, VERIFIES) is None


async def test_a_passkey_counts_only_for_what_opens_later(signing: World) -> None:
    """Who takes over a session and registers a passkey cannot release what waits. SR-4."""
    ann = await signed_in(signing, "ann")
    approval = await opened(signing, ann.who)
    signing.clock.advance(1)
    thief = Person(signing, ann.who, ann.session)
    await thief.register()
    asked = await ann.begin(deed(approval))
    assert [one.passkey.id for one in asked.choices] == [ann.key.credential_id]
    challenge = asked.choices[0].challenge
    answer = thief.key.sign(asked.nonce.token, challenge)
    confirmed = await thief.take(answer, list(asked.choices[0].digests))
    await refused(ann.decide(evolve(deed(approval), confirmed=confirmed)), "after the question")


async def test_registering_needs_a_recent_sign_in(signing: World) -> None:
    """A session that was stolen later registers nothing. SR-4."""
    ann = await signed_in(signing, "ann")
    signing.clock.advance(5 * MINUTE)
    await refused(ann.register(Authenticator()), "sign in again")
    thief = evolve(ann, session="not a session")
    await refused(thief.register(Authenticator()), "sign-in")


async def test_a_registration_is_judged_as_a_confirmation_is(signing: World) -> None:
    """Another origin, no verified person, another account's request, the same key twice. SR-4."""
    ann, bob = await signed_in(signing, "ann"), await signed_in(signing, "bob")
    await refused(ann.register(Authenticator(), origin="https://evil.example"))
    await refused(ann.register(Authenticator(), flags=0x41))
    with pytest.raises(Conflict):
        await ann.register(ann.key)
    asked = await passkeys.begin_registration(signing.services, ann.who)
    answer = Authenticator().register(asked.nonce.token, asked.nonce.challenge)
    work = passkeys.register_passkey(signing.services, bob.who, bob.session, answer, "b", UNKNOWN)
    await refused(work, "another account")
    with pytest.raises(InvalidInput):
        await passkeys.rename_passkey(
            signing.services, ann.who, ann.key.credential_id, " ", UNKNOWN
        )


async def test_the_passkey_of_somebody_else_confirms_nothing(signing: World) -> None:
    """Neither an account's request nor its passkey serves another account. SR-3."""
    ann, bob = await signed_in(signing, "ann"), await signed_in(signing, "bob")
    approval = await opened(signing, ann.who, approvers=("ann@example.org", "bob@example.org"))
    asked = await ann.begin(deed(approval))
    answer = bob.key.sign(asked.nonce.token, asked.choices[0].challenge)
    await refused(ann.take(answer, list(asked.choices[0].digests)), "no passkey of this account")
    await refused(bob.take(answer, list(asked.choices[0].digests)), "another account")


async def test_who_may_not_approve_is_given_no_challenge(signing: World) -> None:
    """The rules about approvers come first, with or without a passkey. SR-3, AP-10, AP-18."""
    ann, eve = await signed_in(signing, "ann"), await signed_in(signing, "eve")
    approval = await opened(
        signing, ann.who, approvers=("ann@example.org",), allow_self_approval=False
    )
    with pytest.raises(Forbidden, match="started"):
        await ann.begin(deed(approval))
    with pytest.raises(NotFound):
        await eve.begin(deed(approval))


async def test_a_request_expires(signing: World) -> None:
    """After five minutes the person begins anew. SR-3."""
    ann = await signed_in(signing, "ann")
    approval = await opened(signing, ann.who)
    asked = await ann.begin(deed(approval))
    signing.clock.advance(5 * MINUTE)
    await refused(ann.take(*ann.sign(asked)), "took too long")
    await refused(ann.take(evolve(ann.sign(asked)[0], nonce="x"), []), "another request")


async def test_a_quorum_has_one_receipt_for_each_person(signing: World) -> None:
    """Two keys of one person are one approval; a change of rows voids earlier receipts. SR-2."""
    ann, bob = await signed_in(signing, "ann"), await signed_in(signing, "bob")
    both = {"approvers": ("ann@example.org", "bob@example.org"), "required_approvals": 2}
    second = evolve(ann, key=Authenticator())
    await second.register()
    approval = await opened(signing, ann.who, **both)
    await ann.approve(deed(approval))
    with pytest.raises(AlreadyDecided):
        await second.approve(deed(approval))
    changed = await bob.approve(deed(approval, Approve({"rows": ROWS[:1]})))
    assert [one.by for one in changed.assents] == ["bob@example.org"]
    after = await ann.approve(deed(changed))
    assert after.status is ApprovalStatus.APPROVED
    _, (job,) = await signing.take()
    found = job.context["steps"]["review"]["output"]["receipts"]
    people = {one["statement"]["accountId"] for one in found}
    assert people == {ann.who.account.id, bob.who.account.id}
    assert {one["statement"]["itemsHash"] for one in found} == {items_hash(after)}


async def test_one_gesture_confirms_several(signing: World) -> None:
    """Each approval has a receipt that fits by itself. SR-2."""
    ann = await signed_in(signing, "ann")
    found = [await opened(signing, ann.who) for _ in range(3)]
    deeds = [deed(one) for one in found]
    confirmed = await ann.take(*ann.sign(await ann.begin(*deeds)))
    for each in deeds:
        after = await ann.decide(evolve(each, confirmed=confirmed))
        receipt = after.history[-1].receipt
        assert receipt is not None
        assert receipt.statement["approvalId"] == each.approval_id
        assert receipt_fault(receipt, VERIFIES) is None
        assert len(receipt.digests) == 3


async def test_a_delegate_signs_with_their_own_passkey(signing: World) -> None:
    """The receipt names who held the passkey. SR-2, AP-36."""
    ann, bob = await signed_in(signing, "ann"), await signed_in(signing, "bob")
    approval = await opened(signing, ann.who, approvers=("ann@example.org",), delegable=True)
    await delegate_approval(
        signing.services, ann.who, approval.id, "bob@example.org", None, DecisionSource.CONSOLE
    )
    after = await bob.approve(deed(await now(signing, approval)))
    receipt = after.history[-1].receipt
    assert receipt is not None
    assert receipt.statement["accountId"] == bob.who.account.id


async def test_the_present_definition_does_not_lower_an_open_question(signing: World) -> None:
    """A workflow that is changed while an approval waits leaves it as it was asked. SR-4."""
    ann = await signed_in(signing, "ann")
    approval = await opened(signing, ann.who)
    await signing.workflow(ann.who, review(ROWS), code("after"))
    await refused(ann.decide(deed(approval)), "without a passkey")


async def test_a_signed_comment_holds_no_secret(signing: World) -> None:
    """What is signed cannot be masked later, so it is refused before. SR-1."""
    ann = await signed_in(signing, "ann")
    approval = await opened(signing, ann.who)
    key = "wf_" + "a" * 12 + "_" + "b" * 43
    with pytest.raises(InvalidInput, match="comment"):
        await ann.begin(deed(approval, comment=f"with sk {key} wfk_live_{'a' * 40}"))


async def test_an_old_session_removes_no_passkey(signing: World) -> None:
    """Whoever takes over a session cannot go back to the password alone; an operator can. SR-5."""
    ann = await signed_in(signing, "ann")
    await passkeys.require_passkey(signing.services, ann.who, ann.session, True, UNKNOWN)
    id, account = ann.key.credential_id, ann.who.account.id
    signing.clock.advance(5 * MINUTE)
    for session in (ann.session, "not a session", None):
        await refused(
            passkeys.remove_passkey(signing.services, ann.who, account, id, UNKNOWN, session),
            "sign",
        )
    assert len(await passkeys.list_passkeys(signing.services, account)) == 1
    await passkeys.remove_passkey(signing.services, OPERATOR, account, id, UNKNOWN)
    assert not await passkeys.list_passkeys(signing.services, account)


async def test_changes_of_passkeys_are_in_the_audit_log(signing: World) -> None:
    """Registering, removing and a refused confirmation, each with its account. SR-5."""
    ann = await signed_in(signing, "ann")
    approval = await opened(signing, ann.who)
    await refused(ann.take(*ann.sign(await ann.begin(deed(approval)), flags=0)))
    id = ann.key.credential_id
    account = ann.who.account.id
    await passkeys.remove_passkey(signing.services, ann.who, account, id, UNKNOWN, ann.session)
    entries = await read_audit(signing.services, approval.created_at - MINUTE, None, 100)
    told = {one.event: one for one in entries}
    assert {"passkey.register", "passkey.remove", "passkey.confirm"} <= told.keys()
    assert told["passkey.register"].details == {"credentialId": id, "name": "a key"}
    assert told["passkey.confirm"].reason == "forbidden"


async def test_a_passkey_signs_in_alone(signing: World) -> None:
    """The account is found by what the passkey says; a replay is refused. SR-5."""
    ann = await signed_in(signing, "ann", counts=False)
    ann.key.user = ann.who.account.id
    nonce = await passkeys.give_nonce(signing.services, passkeys.NonceUse.SIGN_IN)
    answer = ann.key.sign(nonce.token, nonce.challenge)
    begun = await passkeys.sign_in_by_passkey(signing.services, answer, UNKNOWN)
    assert begun.account.id == ann.who.account.id
    await refused(passkeys.sign_in_by_passkey(signing.services, answer, UNKNOWN), "used already")


async def test_a_passkey_after_the_password(signing: World) -> None:
    """If the account says so, neither signs in alone; removing the last key ends that. SR-5."""
    ann = await signed_in(signing, "ann")
    ann.key.user = ann.who.account.id
    args = (signing.services, ann.who, ann.session, True, UNKNOWN)
    await passkeys.require_passkey(*args)
    nonce = await passkeys.give_nonce(signing.services, passkeys.NonceUse.SIGN_IN)
    alone = passkeys.sign_in_by_passkey(
        signing.services, ann.key.sign(nonce.token, nonce.challenge), UNKNOWN
    )
    await refused(alone, "password first")
    use = passkeys.NonceUse.AFTER_PASSWORD
    nonce = await passkeys.give_nonce(signing.services, use, ann.who.account.id)
    answer = ann.key.sign(nonce.token, nonce.challenge)
    begun = await passkeys.sign_in_by_passkey(signing.services, answer, UNKNOWN)
    assert begun.account.passkey_required
    id, account = ann.key.credential_id, ann.who.account.id
    await passkeys.remove_passkey(signing.services, OPERATOR, account, id, UNKNOWN)
    after = await set_account(signing.services, OPERATOR, account, language="de", origin=UNKNOWN)
    assert not after.passkey_required
