"""
Attacks on signed releases through the pages of two processes on one PostgreSQL database: whoever
has a session, a signed answer or a tab more than they should releases nothing with it.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from html import unescape
from typing import Any

import httpx
import pytest
from attrs import asdict, define, evolve, field

from adapters_runtime.passkeys import WebAuthnPasskeys
from tests.support.authenticator import PARTY, URL, Authenticator
from wfcore.rules.base64url import decoded
from wfcore.rules.receipt import read_receipt, receipt_fault

from .conftest import ApiCaller
from .process import Server, free_port
from .site import Site

FLOW = """
steps:
  - name: release
    kind: manual_approval
    assurance: passkey
    message: Sign the payments that may leave.
    approvers: [{approvers}]
    groups:
      - name: payments
        rows: [{{id: P-1, amount: 1200.5}}]
        rowKey: id
        columns: [{{key: id, editable: false}}, {{key: amount, type: number}}]
"""
SAME = {"Sec-Fetch-Site": "same-origin"}


class PublicSite(Site):
    """A server that people know by `URL`; these tests reach it on loopback."""

    def serve(self) -> None:
        port = free_port()
        self.server = Server(self.data, self.settings, port)
        self.server.url = f"http://127.0.0.1:{port}"
        self.http = httpx.Client(base_url=self.server.url, timeout=90)


@pytest.fixture(scope="module")
def site(server: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    server.execute("CREATE DATABASE attacks")
    data = tmp_path_factory.mktemp("attacks") / "data"
    settings = {"WFCORE_PUBLIC_URL": URL, "WFCORE_PROCESSES": "2"}
    with closing(PublicSite(data, settings, store=server.url("attacks"))) as made:
        yield made


@define
class Tab:
    """A signed-in browser of a person with one passkey."""

    caller: ApiCaller
    cookie: dict[str, str]
    key: Authenticator = field(factory=Authenticator)

    def post(self, path: str, **more: Any) -> httpx.Response:
        """By a connection of its own, so that either process may answer."""
        headers = {**self.cookie, **SAME, **more.pop("headers", {})}
        url = f"{self.caller.site.server.url}{path}"
        return httpx.post(url, headers=headers, timeout=90, **more)

    def asked(self, path: str) -> Any:
        """The request for a passkey on a page."""
        url = f"{self.caller.site.server.url}{path}"
        text = httpx.get(url, headers=self.cookie, timeout=90).text
        (found,) = re.findall(r'data-passkey="([^"]*)"', text)
        return json.loads(unescape(found))

    def register(self) -> httpx.Response:
        asked = self.asked("/account")
        made = self.key.register(asked["nonce"], decoded(asked["challenge"]))
        body = {
            "nonce": made.nonce, "clientData": made.client_data, "attestation": made.attestation,
        }  # fmt: skip
        form = {"name": "a key", "passkey": json.dumps(body)}
        return self.post("/account/passkeys", data=form)

    def decision(self, approval: str, **more: Any) -> dict[str, Any]:
        shown = self.caller.get(f"/api/v1/approvals/{approval}").json()
        return {"expectedItemsHash": shown["itemsHash"], **more}

    def confirm(self, approval: str, **more: Any) -> Any:
        """The server's request for the passkey of one decision."""
        answer = self.post(f"/approvals/{approval}/confirm", json=self.decision(approval, **more))
        assert answer.status_code == 200, answer.text
        return answer.json()

    def sign(self, asked: Any) -> dict[str, Any]:
        (choice,) = [one for one in asked["choices"] if one["id"] == self.key.credential_id]
        made = asdict(self.key.sign(asked["nonce"], decoded(choice["challenge"])))
        names = {re.sub("_(.)", lambda one: one[1].upper(), name): made[name] for name in made}
        return {**names, "digests": choice["digests"]}

    def approve(self, approval: str, passkey: Any, **more: Any) -> httpx.Response:
        body = self.decision(approval, passkey=passkey, **more)
        return self.post(f"/approvals/{approval}/approve", json=body)


def tab(site: Site) -> Tab:
    caller = site.caller()
    made = Tab(caller, caller.sign_in(), Authenticator(party=PARTY))
    assert made.register().status_code == 303
    return made


@pytest.fixture
def ann(site: Site) -> Tab:  # type: ignore[override]
    return tab(site)


def opened(ann: Tab, *others: Tab) -> str:
    """An approval that Ann and *others* may sign."""
    people = ", ".join(one.caller.account.email for one in (ann, *others))
    flow = ann.caller.workflow(FLOW.format(approvers=people))
    return ann.caller.paused(flow)[1]


def at_once(count: int, work: Callable[[int], httpx.Response]) -> Counter[int]:
    """The statuses of requests that are sent at the same time."""
    with ThreadPoolExecutor(count) as pool:
        return Counter(one.status_code for one in pool.map(work, range(count)))


def receipts(ann: Tab, approval: str) -> list[Any]:
    """The receipts of an approval, each of which fits by itself."""
    found = [read_receipt(one) for one in read(ann, approval)["receipts"]]
    assert [receipt_fault(one, WebAuthnPasskeys().verifies) for one in found] == [None] * len(found)
    return found


def read(ann: Tab, approval: str) -> Any:
    return ann.caller.get(f"/api/v1/approvals/{approval}").json()


def is_untouched(ann: Tab, approval: str) -> bool:
    seen = read(ann, approval)
    return seen["status"] == "PENDING" and not seen["receipts"]


def test_one_answer_sent_often_at_once_counts_once(ann: Tab) -> None:
    """Whichever process gets it, a signed answer is taken once. SR-3."""
    ann.key.counts = False
    id = opened(ann)
    answer = ann.sign(ann.confirm(id))
    statuses = at_once(12, lambda _: ann.approve(id, answer))
    assert statuses[200] == 1
    assert set(statuses) <= {200, 403, 409}
    assert len(receipts(ann, id)) == 1


def test_tabs_that_sign_at_once_leave_one_receipt(ann: Tab) -> None:
    """Each has its own nonce and signature; one decision counts. SR-2, SR-3."""
    id = opened(ann)
    answers = [ann.sign(ann.confirm(id)) for _ in range(6)]
    statuses = at_once(6, lambda at: ann.approve(id, answers[at]))
    assert statuses[200] == 1
    assert set(statuses) <= {200, 403, 409}
    assert len(receipts(ann, id)) == 1


def test_a_signature_serves_no_other_decision(ann: Tab) -> None:
    """Another approval, other rows, another comment, no comment: each is refused. SR-3."""
    one, other = opened(ann), opened(ann)
    for id, more in (
        (other, {}),
        (one, {"editedItems": {"payments": [{"id": "P-1", "amount": 1}]}}),
        (one, {"comment": "other words"}),
    ):
        answer = ann.approve(id, ann.sign(ann.confirm(one)), **more)
        assert answer.status_code == 403, answer.text
        assert "what was signed is not what is decided" in answer.text
    assert ann.approve(one, None).status_code == 403
    assert is_untouched(ann, one)
    assert is_untouched(ann, other)


def test_a_stolen_session_releases_nothing(site: Site, ann: Tab) -> None:
    """It has no passkey of Ann's; a new one is registered too late for what waits. SR-4."""
    id = opened(ann)
    thief = evolve(ann, key=Authenticator(party=PARTY))
    asked = ann.confirm(id)
    forged = {**ann.sign(asked), "signature": thief.sign({**asked, "choices": [
        {**asked["choices"][0], "id": thief.key.credential_id}]})["signature"]}  # fmt: skip
    assert thief.approve(id, forged).status_code == 403
    assert thief.register().status_code == 303
    late = [one["id"] for one in ann.confirm(id)["choices"]]
    assert thief.key.credential_id not in late
    own = {**asked, "choices": [{**asked["choices"][0], "id": thief.key.credential_id}]}
    refused = thief.approve(id, thief.sign(own))
    assert (refused.status_code, "after the question" in refused.text) == (403, True)
    assert is_untouched(ann, id)


def test_a_confirmation_belongs_to_one_account(site: Site, ann: Tab) -> None:
    """Bob may approve as well, but not with Ann's answer, nor Ann with his key. SR-3."""
    bob = tab(site)
    id = opened(ann, bob)
    assert bob.approve(id, ann.sign(ann.confirm(id))).status_code == 403
    crossed = {**ann.sign(ann.confirm(id)), "nonce": bob.confirm(id)["nonce"]}
    assert ann.approve(id, crossed).status_code == 403
    assert is_untouched(ann, id)
    assert bob.approve(id, bob.sign(bob.confirm(id))).status_code == 200
    (receipt,) = receipts(ann, id)
    assert receipt.statement["accountId"] == bob.caller.account.id


def test_a_nonce_serves_one_use(ann: Tab) -> None:
    """What was given to sign in or to register confirms no approval. SR-3."""
    id = opened(ann)
    asked = ann.confirm(id)
    for path in ("/sign-in", "/account"):
        other = Tab(ann.caller, {} if path == "/sign-in" else ann.cookie).asked(path)
        answer = ann.sign({**asked, "nonce": other["nonce"]})
        assert ann.approve(id, answer).status_code == 403
    entered = ann.post("/sign-in/passkey", data={"passkey": json.dumps(ann.sign(asked))})
    assert entered.status_code >= 400
    assert is_untouched(ann, id)


def test_a_copied_passkey_is_noticed(ann: Tab) -> None:
    """Its counter is behind: it is refused, and the original still signs. SR-3."""
    one, other = opened(ann), opened(ann)
    copy = evolve(ann.key)
    copy.key, copy.id = ann.key.key, ann.key.id
    assert ann.approve(one, ann.sign(ann.confirm(one))).status_code == 200
    refused = evolve(ann, key=copy).approve(other, evolve(ann, key=copy).sign(ann.confirm(other)))
    assert (refused.status_code, "counter went back" in refused.text) == (403, True)
    assert is_untouched(ann, other)
    assert ann.approve(other, ann.sign(ann.confirm(other))).status_code == 200


def test_a_key_that_is_removed_meanwhile_signs_nothing(ann: Tab) -> None:
    """Neither with a request from before nor with a new one. SR-5."""
    id = opened(ann)
    answer = ann.sign(ann.confirm(id))
    removed = ann.post(f"/account/passkeys/{ann.key.credential_id}/remove")
    assert removed.status_code == 303
    assert ann.approve(id, answer).status_code == 403
    again = ann.post(f"/approvals/{id}/confirm", json=ann.decision(id))
    assert again.status_code == 403
    assert is_untouched(ann, id)


def test_a_changed_workflow_lowers_no_open_approval(ann: Tab) -> None:
    """Its author takes the passkey away while it waits; a session alone releases nothing. SR-4."""
    text = FLOW.format(approvers=ann.caller.account.email)
    flow = ann.caller.workflow(text, "payouts")
    _, id = ann.caller.paused(flow)
    assert ann.caller.workflow(text.replace("assurance: passkey", ""), "payouts") == flow
    assert ann.approve(id, None).status_code == 403
    assert is_untouched(ann, id)
    _, plain = ann.caller.paused(flow)
    assert ann.approve(plain, None).status_code == 200


@pytest.mark.parametrize(
    "change",
    [
        {"digests": []},
        {"digests": ["x" * 64] * 10_000},
        {"digests": "abc"},
        {"digests": [None]},
        {"digests": [["a"]]},
        {"credentialId": "\0"},
        {"credentialId": "é"},
        {"nonce": "\ud800"},
        {"nonce": "a" * 100_000},
        {"authenticatorData": ""},
        {"authenticatorData": "!!"},
        {"clientData": "bnVsbA"},
        {"clientData": "W10"},
        {"clientData": "eyJ0eXBlIjoxfQ"},
        {"signature": ""},
        {"signature": "A" * 100_000},
        {"user": "acc_0"},
        {"extra": 1},
    ],
)
def test_a_malformed_answer_is_a_refusal(ann: Tab, change: dict[str, Any]) -> None:
    """Never an error of the server, and nothing is decided. SR-3."""
    id = opened(ann)
    sent = json.dumps(ann.decision(id, passkey={**ann.sign(ann.confirm(id)), **change}))
    head = {"Content-Type": "application/json"}
    answer = ann.post(f"/approvals/{id}/approve", content=sent, headers=head)
    fine = change == {"user": "acc_0"}  # names nobody where an account is signed in
    assert (answer.status_code == 200) if fine else (answer.status_code in (400, 403, 413))
    assert is_untouched(ann, id) != fine


def test_a_page_of_another_site_begins_and_decides_nothing(ann: Tab) -> None:
    """Neither the request for a passkey nor the decision is taken from it. SE-3."""
    id = opened(ann)
    body = ann.decision(id, passkey=ann.sign(ann.confirm(id)))
    for path in ("confirm", "approve"):
        for strange in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}):
            answer = ann.post(f"/approvals/{id}/{path}", json=body, headers=strange)
            assert answer.status_code == 403
    assert is_untouched(ann, id)
