"""Pages and cursors from text."""

import json
from base64 import urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wfcore.errors import InvalidInput
from wfcore.model.page import PageCursor, PageRequest
from wfcore.rules.limits import APPROVAL_PAGE, WORKFLOW_PAGE
from wfcore.rules.paging import cursor_text, page_request, read_cursor

SIZES = st.sampled_from([WORKFLOW_PAGE, APPROVAL_PAGE])
HUGE = "9" * 5_000


def test_the_sizes_of_the_lists():
    """LM-4, LM-5: 50 and 20 by default, 200 at most."""
    assert (WORKFLOW_PAGE, APPROVAL_PAGE) == ((50, 200), (20, 200))


@given(SIZES)
def test_the_first_page_is_the_default(sizes):
    """PG-1: page 1 of the list's own size."""
    assert page_request(None, None, sizes) == PageRequest(1, sizes[0])


@given(st.integers(1, 10**9), st.integers(1, 10**30), SIZES, st.integers(0, 40))
def test_a_size_over_the_largest_is_cut_to_it(page, size, sizes, zeros):
    """PG-2: and echoed as it was used; leading zeros change nothing."""
    asked = page_request("0" * zeros + str(page), "0" * zeros + str(size), sizes)
    assert asked == PageRequest(page, min(size, sizes[1]))
    assert asked.offset == (page - 1) * asked.size


@given(SIZES)
def test_an_enormous_number_is_no_crash(sizes):
    """PG-1, PG-2: thousands of digits are a size too large, and no page that a list could have."""
    assert page_request("1000000000", HUGE, sizes) == PageRequest(10**9, sizes[1])
    for page in (HUGE, "1000000001", "9" * 19):
        with pytest.raises(InvalidInput, match="page: must be at most 1,000,000,000"):
            page_request(page, None, sizes)


@given(
    st.integers(-(10**9), 0).map(str)
    | st.floats().map(str)
    | st.text().filter(lambda text: not (text.isascii() and text.isdigit()))
    | st.sampled_from(["", " 1", "1 ", "+1", "1_0", "٣", "²", "0x1", "1e3", "00", "0" * 30])
)
def test_anything_else_is_refused_by_name(text):
    """PG-1: zero, signs, blanks, other scripts' digits, fractions."""
    for page, size, field in ((text, None, "page"), (None, text, "size")):
        with pytest.raises(InvalidInput) as mistake:
            page_request(page, size, WORKFLOW_PAGE)
        assert str(mistake.value) == f"{field}: must be a positive integer"


KEYS = {"executions": st.integers(0, 2**53 - 1), "workflows": st.text()}
CURSORS = st.sampled_from(sorted(KEYS)).flatmap(
    lambda name: st.tuples(st.just(name), st.builds(PageCursor, KEYS[name], st.text()))
)


@given(CURSORS, st.integers(1, 200))
def test_a_cursor_comes_back_as_it_was_given(of, size):
    """PG-5: it is plain ASCII for a query, and stands in the place of a page."""
    name, cursor = of
    text = cursor_text(name, cursor)
    assert text.isascii()
    assert text.replace("-", "").replace("_", "").isalnum()
    asked = page_request(None, str(size), WORKFLOW_PAGE, text, name)
    assert (asked.after, asked.size, asked.offset) == (cursor, size, 0)
    with pytest.raises(InvalidInput, match="page: does not go with after"):
        page_request("1", None, WORKFLOW_PAGE, text, name)


def encoded(value, separators=(",", ":")):
    """As a cursor is written, whatever *value* is."""
    text = json.dumps(value, ensure_ascii=False, separators=separators)
    return urlsafe_b64encode(text.encode(errors="surrogatepass")).decode().rstrip("=")


@pytest.mark.parametrize("id", ["a", "é", "~7", "<%"])
def test_the_text_of_a_cursor_never_changes(id):
    """PG-5: clients keep it over updates: list, key and id as the shortest JSON, in base64."""
    text = cursor_text("executions", PageCursor(7, id))
    assert text == encoded(["executions", 7, id])
    assert read_cursor("executions", text) == PageCursor(7, id)


@pytest.mark.parametrize("pair", [(1, "a"), ("a", 1), (None, "a"), ("a", None)])
def test_a_name_is_text_and_so_is_its_id(pair):
    """PG-5: what a list by name goes on behind can be compared with its rows."""
    with pytest.raises(InvalidInput, match=r"^after: "):
        read_cursor("workflows", encoded(["workflows", *pair]))


@given(
    st.text(min_size=1).filter(lambda text: not text.startswith("WyJ"))  # `["`
    | st.text("ABCab019-_=", min_size=1)
    | st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists)
    .filter(lambda value: not isinstance(value, list) or value[:1] != ["executions"])
    .map(encoded)
    | st.tuples(st.just("executions"), st.booleans() | st.integers(max_value=-1), st.text()).map(
        encoded
    )
    | st.sampled_from(
        [
            "[" * 900,
            encoded(["executions", 2**53, "a"]),
            encoded(["executions", -1, "a"]),
            encoded(["executions", "1", "a"]),
            encoded(["executions", 1, 2]),
            encoded(["executions", 1.0, "a"]),
            encoded(["executions", 1, "\ud800"]),
            encoded(["executions", 1, "a"], (", ", ": ")),  # blanks: not as it was given
            cursor_text("approvals", PageCursor(1, "a")),
            cursor_text("executions", PageCursor(1, "a")) + "=",
            urlsafe_b64encode(b"[" * 3_000).decode(),
        ]
    )
)
def test_what_was_never_a_cursor_is_refused_by_name(text):
    """PG-5: other lists' cursors, other types, numbers out of range, and anything else."""
    for name in ("executions", "webhooks"):
        with pytest.raises(InvalidInput) as mistake:
            read_cursor(name, text)
        assert str(mistake.value) == "after: must be `next` of a page of this list, as it was given"


def test_an_empty_cursor_is_the_first_page():
    """PG-5: as empty filters count as absent."""
    assert page_request("2", None, WORKFLOW_PAGE, "", "executions") == PageRequest(2, 50)


def test_a_key_is_a_number_that_every_store_can_hold():
    """PG-5: up to what a float holds exactly."""
    assert read_cursor("executions", encoded(["executions", 2**53 - 1, "a"])).key == 2**53 - 1
    for key in (2**53, 2**54 - 1):
        with pytest.raises(InvalidInput):
            read_cursor("executions", encoded(["executions", key, "a"]))
