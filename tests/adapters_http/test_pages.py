"""The one-click pages: complete, escaped, self-contained; and who may decide through them."""

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters_http.pages import (
    MOST_COLUMNS,
    MOST_ROWS,
    PAGE_HEADERS,
    confirm_page,
    decided_page,
    error_page,
    may_decide,
    remaining,
    utc,
)
from wfcore.model.approval import ApprovalStatus, Assent, DecisionSource, Group, Verdict
from wfcore.model.workflow import Column, ColumnType
from wfcore.rules.approval.agreement import items_hash
from wfcore.rules.markdown import escaped
from wfcore.testing import builders as make
from wfcore.time import DAY, HOUR, MINUTE, EpochMs

NOW = EpochMs(1_763_700_000_000)
ANN = Assent("ann@example.org", "acc_1", NOW)
COLUMNS = (Column("id", "Order"), Column("amount", "Amount €", ColumnType.NUMBER))
HOSTILE = "</style></textarea><script>alert(1)</script>\"'><img src=x onerror=y>&amp;{{ 7*7 }}{% x"


class Read(HTMLParser):
    """What a browser would see of a page: elements, attributes, text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_data(self, data):
        self.text += data

    def fields(self) -> dict[str | None, str | None]:
        """Hidden fields of the form, by name."""
        values = [
            value for tag, name, value in self.attributes if (tag, name) == ("input", "value")
        ]
        names = [value for tag, name, value in self.attributes if (tag, name) == ("input", "name")]
        return dict(zip(names, values, strict=True))


def orders(count: int, **fields) -> Group:
    rows = tuple({"id": f"A-{n}", "amount": n * 1.5} for n in range(count))
    return Group("refunds", "Refunds", COLUMNS, rows, **fields)


def asking(groups=(), verdict=Verdict.APPROVE, **fields):
    record = make.approval(
        message="Review the refunds",
        step_name="review",
        groups=groups,
        expires_at=NOW + 2 * HOUR + 5 * MINUTE,
    )
    return confirm_page(record, verdict, now=NOW, workflow_name="Refund orders", **fields)


def test_the_question_says_everything_a_reviewer_needs():
    """Message, workflow, step, expiry, rows with their titles and number, and the decision."""
    seen = Read(asking([orders(3)]).html)
    for text in (
        "Review the refunds",
        "Refund orders",
        "review",
        "2025-11-21 06:45 UTC",
        "2 hours 5 minutes",
        "Refunds",
        "3 rows",
        "Order",
        "Amount €",
        "A-2",
        "3.0",
        "Approve",
    ):
        assert text in seen.text, text


def test_at_most_twenty_rows_are_shown():
    """Of many rows the first twenty are shown, and the page says so."""
    seen = Read(asking([orders(21)]).html)
    assert seen.tags.count("tr") == MOST_ROWS + 1
    assert "A-19" in seen.text
    assert "A-20" not in seen.text
    assert "The first 20 of 21 rows." in seen.text


def test_rows_without_column_definitions_bring_their_own():
    """Where no columns are defined, the keys of the rows are the columns, up to a number."""
    wide = {f"k{n}": n for n in range(100)}
    group = Group("g", "", (), ({"a": None, "b": True}, {"c": {"x": [1]}}, wide))
    seen = Read(asking([group]).html)
    assert seen.tags.count("th") == MOST_COLUMNS
    assert '{"x":[1]}' in seen.text
    assert "true" in seen.text


def test_a_long_cell_is_cut():
    """A value of any length takes little room."""
    group = Group("g", "G", (), ({"a": "x" * 100_000},))
    assert len(asking([group]).html) < 10_000


@pytest.mark.parametrize(("verdict", "button"), [("approve", "Approve"), ("reject", "Reject")])
def test_the_button_asks_the_same_address_with_confirm(verdict, button):
    """A GET form without an address of its own keeps the key and adds confirm=1."""
    seen = Read(asking(verdict=Verdict(verdict), api_key="wfk_a_b").html)
    assert seen.fields() == {"api_key": "wfk_a_b", "confirm": "1"}
    assert ("form", "method", "get") in seen.attributes
    assert not [name for tag, name, _ in seen.attributes if (tag, name) == ("form", "action")]
    assert button in seen.text


def test_the_button_takes_along_what_was_shown():
    """An approve carries the digest of its rows; a reject, or a page without rows, none. AP-19."""
    group = orders(3)
    fields = Read(asking([group]).html).fields()
    assert fields["expectedItemsHash"] == items_hash(make.approval(groups=(group,)))
    assert "expectedItemsHash" not in Read(asking([group], Verdict.REJECT).html).fields()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (0, "0 of 3 approvals are there. One rejection"),
        (1, "1 of 3 approvals are there: ann@example.org. One rejection"),
    ],
)
def test_a_quorum_says_how_far_it_is(given, says):
    """Where several must agree, the page tells who has, and what this yes will do. AP-15."""
    record = make.approval(required_approvals=3, assents=(ANN,)[:given])
    seen = Read(confirm_page(record, Verdict.APPROVE, now=NOW).html)
    assert says in " ".join(seen.text.split())
    assert f"is number {given + 1} of 3" in seen.text
    rejecting = Read(confirm_page(record, Verdict.REJECT, now=NOW).html)
    assert "is number" not in rejecting.text


def test_the_last_yes_of_a_quorum_lets_the_workflow_go_on():
    """Who completes it is told that the workflow goes on. AP-15."""
    record = make.approval(required_approvals=2, assents=(ANN,))
    seen = Read(confirm_page(record, Verdict.APPROVE, now=NOW).html)
    assert "The workflow goes on with the data as shown." in seen.text


def test_changed_rows_are_pointed_out():
    """A page that is shown again because the rows changed says so. AP-19."""
    assert "rows have changed" in Read(asking([orders(1)], changed=True).html).text
    assert "rows have changed" not in Read(asking([orders(1)]).html).text


@pytest.mark.parametrize(
    ("required", "more"), [(2, "1 more approval is"), (3, "2 more approvals are")]
)
def test_a_yes_on_record_says_what_it_waits_for(required, more):
    """After a yes that is not the last one the page says how many are missing. AP-15."""
    record = make.approval(required_approvals=required, assents=(ANN,))
    text = " ".join(Read(decided_page(record).html).text.split())
    assert f"Your approval is on record. The workflow goes on when {more} there" in text
    assert f"ann@example.org (1 of {required})" in text


def test_without_a_key_in_the_address_there_is_none_in_the_page():
    """A key that came in a header is not written into the page."""
    assert Read(asking().html).fields() == {"confirm": "1"}


def test_the_comment_field_is_labelled_and_filled():
    """The comment of the link is in a field that has a label."""
    seen = Read(asking(comment="\nlooks fine").html)
    assert ("label", "for", "comment") in seen.attributes
    assert ("textarea", "id", "comment") in seen.attributes
    assert "looks fine" in seen.text


def test_what_was_decided_is_shown_with_who_when_and_how():
    """A decided approval shows its decision, by whom, when, how, and the comment."""
    record = make.approval(
        status=ApprovalStatus.REJECTED,
        decided_by="ann@example.org",
        decided_at=NOW,
        decision_source=DecisionSource.LINK,
        comment="no way",
    )
    seen = Read(decided_page(record, workflow_name="W").html)
    for text in ("Rejected", "ann@example.org", "2025-11-21 04:40 UTC", "link", "no way"):
        assert text in seen.text, text
    assert "form" not in seen.tags


@pytest.mark.parametrize("source", [*DecisionSource, None])
@pytest.mark.parametrize("status", list(ApprovalStatus))
def test_every_state_of_an_approval_has_a_page(status, source):
    """Whatever became of an approval, and through whatever door, can be shown."""
    html, _ = decided_page(make.approval(status=status, decision_source=source))
    assert status.capitalize() in Read(html).text


@pytest.mark.parametrize(
    ("status", "title"), [(401, "Unauthorized"), (404, "Not Found"), (499, "Error")]
)
def test_an_error_is_a_page_too(status, title):
    """An error page names the status and says the message."""
    seen = Read(error_page(status, "such is life").html)
    assert str(status) in seen.text
    assert title in seen.text
    assert "such is life" in seen.text


def hostile_pages(text: str) -> list[str]:
    group = Group(text, text, (Column("k", text),), ({"k": text}, {"k": {text: text}}))
    record = make.approval(
        message=text,
        question=escaped(text),
        step_name=text,
        workflow_id=text,
        groups=(group, Group(text, "", (), ({text: text},))),
        decided_by=text,
        comment=text,
        expires_at=NOW,
    )
    named = {"api_key": text, "comment": text, "workflow_name": text}
    return [
        confirm_page(record, Verdict.APPROVE, now=NOW, **named).html,
        decided_page(record, workflow_name=text).html,
        error_page(400, text).html,
    ]


def plain(text: str = "plain") -> list[list[str]]:
    return [Read(html).tags for html in hostile_pages(text)]


def test_markup_from_outside_stays_text():
    """Markup and template syntax in any value are shown, not obeyed."""
    for html in hostile_pages(HOSTILE):
        assert "<script" not in html
        assert "<img" not in html
        assert HOSTILE in Read(html).text


@given(text=st.text("<>\"'&/= abcs!-{}%#\x00\u2028`", min_size=1))
def test_no_value_from_outside_changes_a_page(text):
    """Whatever the values are, the page has the same elements."""
    assert [Read(html).tags for html in hostile_pages(f"x{text}")] == plain()


def test_a_page_loads_nothing():
    """No page has a script, an address of something to load, or an inline style attribute."""
    for html in [*hostile_pages("x"), asking([orders(2)], api_key="k").html]:
        seen = Read(html)
        assert not {"script", "link", "img", "iframe", "base"} & set(seen.tags)
        assert not [name for _, name, _ in seen.attributes if name in ("src", "href", "style")]
        assert "url(" not in html
        assert "@import" not in html


def test_the_policy_lets_exactly_this_page_through():
    """The style's nonce is the policy's, new for each page; nothing else is allowed."""
    html, nonce = asking()
    assert ("style", "nonce", nonce) in Read(html).attributes
    assert asking().nonce != nonce
    headers = PAGE_HEADERS(nonce)
    policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
    assert policy == {
        "default-src": "'none'",
        "style-src": f"'nonce-{nonce}'",
        "form-action": "'self'",
        "base-uri": "'none'",
        "frame-ancestors": "'none'",
    }
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"sec-fetch-site": "same-origin", "sec-fetch-dest": "document"},
        {"sec-fetch-site": "none", "sec-fetch-dest": "document", "purpose": ""},
        {"sec-fetch-site": "none", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"},
    ],
)
def test_a_person_may_decide(headers):
    """A plain client, and a browser that pressed the button, may decide."""
    assert may_decide("GET", headers)


@pytest.mark.parametrize(
    "headers",
    [
        {"purpose": "prefetch"},
        {"purpose": "preview"},
        {"sec-purpose": "prefetch;prerender"},
        {"sec-purpose": "Prefetch"},
        {"x-purpose": "preview"},
        {"x-moz": "prefetch"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "Cross-Site", "sec-fetch-dest": "document"},
        {"sec-fetch-dest": "iframe"},
        {"sec-fetch-dest": "empty"},
        {"sec-fetch-site": "same-origin", "sec-fetch-dest": "empty"},
        {"sec-fetch-site": "same-origin", "sec-fetch-mode": "no-cors"},
        {"sec-fetch-mode": "cors"},
        {"sec-fetch-mode": "no-cors", "sec-fetch-dest": "document"},
        {"sec-fetch-site": "same-site", "sec-fetch-mode": "navigate"},
        {"sec-fetch-dest": "image"},
        {"sec-fetch-site": "same-origin", "sec-fetch-dest": "object"},
    ],
)
def test_a_machine_or_another_site_may_not_decide(headers):
    """Prefetches, previews, other sites and embedded loads never decide."""
    assert not may_decide("GET", headers)


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "POST"])
def test_only_get_decides(method):
    """HEAD, and whatever else is not GET, never decides."""
    assert not may_decide(method, {})


@pytest.mark.parametrize(
    ("left", "text"),
    [
        (0, None),
        (-1, None),
        (1, "less than a second"),
        (1_000, "1 second"),
        (61_000, "1 minute 1 second"),
        (HOUR, "1 hour"),
        (HOUR + 1_000, "1 hour"),
        (DAY + 2 * HOUR + MINUTE, "1 day 2 hours"),
    ],
)
def test_the_time_left_is_said_in_two_units(left, text):
    """The two largest units are enough; what is over is told apart."""
    assert remaining(left) == text


@given(at=st.integers(0, 2**63))
def test_any_instant_can_be_shown(at):
    """However far away, an instant has a text."""
    assert utc(EpochMs(at)).endswith(" UTC")
