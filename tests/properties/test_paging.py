"""Pages from text. Contract §6."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wfcore.errors import InvalidInput
from wfcore.model.page import PageRequest
from wfcore.rules.limits import APPROVAL_PAGE, WORKFLOW_PAGE
from wfcore.rules.paging import page_request

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
        assert mistake.value.field == field
