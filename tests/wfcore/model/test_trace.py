"""W3C Trace Context: what is read, what is ignored, and what is told to callees. TR-1, TR-2."""

import pytest
from attrs import evolve

from wfcore.model.trace import Trace, trace_from

ID, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize(
    ("text", "sampled"),
    [
        (f"00-{ID}-{SPAN}-01", True),
        (f"00-{ID}-{SPAN}-00", False),
        (f"00-{ID}-{SPAN}-03", True),
        (f"cc-{ID}-{SPAN}-01", True),
        (f"cc-{ID}-{SPAN}-01-what-comes-later", True),
    ],
)
def test_a_context_is_read(text: str, sampled: bool) -> None:
    """Of later versions, what this one knows."""
    assert trace_from(text, "a=1") == Trace(ID, SPAN, sampled, "a=1")


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "00",
        f"ff-{ID}-{SPAN}-01",
        f"00-{ID}-{SPAN}-01-more",
        f"cc-{ID}-{SPAN}-01more",
        f"00-{ID.upper()}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{ID}-{'0' * 16}-01",
        f"00-{ID}-{SPAN}-1",
        f"00-{ID[:-1]}-{SPAN}-01",
        f"00-{ID}-{SPAN}-01\n",
    ],
)
def test_what_is_malformed_is_ignored(text: str | None) -> None:
    """As if nothing had been sent; a state without a context says nothing."""
    assert trace_from(text, "a=1") is None


@pytest.mark.parametrize(
    "state",
    [
        *("a=" + "x" * 511, "a=\x00", "a=ü", "", " , ", None),
        *("garbage", "a=1,garbage", "=1", "a=", "A=1", "a b=1", "a=1=2", "a=1,b=2, a=3"),
        *("@a=1", "a@=1", "a@b@c=1", "a@" + "b" * 15 + "=1", "a" * 257 + "=1"),
        ",".join(f"k{at}=1" for at in range(33)),
    ],
)
def test_a_malformed_state_is_dropped_alone(state: str | None) -> None:
    """One that is too long, or whose members are no pairs, too many, or of one name."""
    assert trace_from(f"00-{ID}-{SPAN}-01", state) == Trace(ID, SPAN, True)


@pytest.mark.parametrize("state", ["rojo=00f067,congo=t61 x", "7t@ven-dor=1", "a*/_-=:;~ !"])
def test_a_state_is_kept(state: str) -> None:
    """As W3C describes it, without the blanks around its members."""
    spaced = state.replace(",", "\t, ,")
    assert trace_from(f"00-{ID}-{SPAN}-01", spaced) == Trace(ID, SPAN, True, state)


def test_what_is_recorded_becomes_the_parent_and_what_is_not_is_passed_on() -> None:
    """Nobody is told of a span that nobody makes."""
    sent = Trace(ID, SPAN, sampled=True)
    recorded, mine = evolve(sent, recorded=True), "1" * 16
    assert recorded.handed_on(mine) == f"00-{ID}-{mine}-01"
    assert sent.handed_on(mine) == f"00-{ID}-{SPAN}-01"
    assert Trace(ID).handed_on(mine) is None
    assert (recorded.below(mine).parent, sent.below(mine)) == (mine, sent)
