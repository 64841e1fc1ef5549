"""The form of ids: time, cell, chance. Decision 221."""

import re

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from adapters_runtime.system import SystemIds
from wfcore.errors import InvalidInput
from wfcore.model.notice import NoticeKind
from wfcore.rules.auth.api_key import compose, parse
from wfcore.rules.execution.start import id_for
from wfcore.rules.ids import CELL_PATTERN, COUNTS, FIRST_CELL, caused_id, cell_of, timed_id
from wfcore.rules.notices.facts import notice_id
from wfcore.rules.triggers.schedule import start_id
from wfcore.testing import builders
from wfcore.testing.strategies.values import base62, instants
from wfcore.time import EpochMs
from wfserver.settings.record import settings_from

PREFIXES = ("exec", "appr", "wf", "wh", "acc", "art", "trg", "aud", "dlv", "worker", "wfk", "ntc")
HEX = "0123456789abcdef"
prefixes = st.sampled_from(PREFIXES)
cells = st.from_regex(CELL_PATTERN, fullmatch=True)
counts = st.integers(0, COUNTS - 1)
chances = st.binary(min_size=6, max_size=6)
digits = st.text(HEX, min_size=26, max_size=26)
old_ids = st.builds("{}_{}".format, prefixes, digits)
new_ids = st.builds(timed_id, prefixes, instants(), counts, cells, chances)


@given(prefixes, instants(), counts, cells, chances)
def test_the_cell_is_read_from_every_id(prefix, at, count, cell, chance):
    """Also without its prefix, as the id of an API key is stored."""
    id = timed_id(prefix, at, count, cell, chance)
    assert cell_of(id) == cell_of(id.removeprefix(f"{prefix}_")) == cell
    assert re.fullmatch(rf"{prefix}_[0-9a-z]{{28}}", id)


@given(prefixes, instants(), counts, chances, cells, cells)
def test_ids_of_two_cells_are_never_equal(prefix, at, count, chance, one, other):
    """Made in the same millisecond, with the same number and the same chance."""
    same = timed_id(prefix, at, count, one, chance) == timed_id(prefix, at, count, other, chance)
    assert same == (one == other)


@given(old_ids, base62(16))
def test_ids_from_before_cells_have_none(id, key):
    """So no new id equals an old one: what has a cell is new."""
    assert cell_of(id) is None
    assert cell_of(key) is None
    assert parse(compose(key, "0" * 36)).id == key


@given(st.text() | st.text("k0_" + HEX))
def test_of_any_other_text_the_cell_is_that_of_an_id_or_none(text):
    """Whatever a client sends instead of an id; nothing is raised."""
    cell = cell_of(text)
    assert cell is None or f"{cell}" in text


@given(st.lists(st.tuples(instants(), st.booleans(), cells, counts, chances), min_size=2))
def test_old_and_new_ids_of_all_cells_order_by_time(made):
    """As texts, which is how stores compare them."""
    ids = {
        timed_id("aud", at, count, cell if new else "", chance): at
        for at, new, cell, count, chance in made
    }
    ordered = [ids[id] for id in sorted(ids)]
    assert ordered == sorted(ordered)


@given(new_ids, old_ids, instants())
def test_an_id_that_follows_from_a_cause_has_the_cell_of_the_cause(new, old, at):
    """
    A trigger from before there were cells starts an instant under the same id as ever, or it would
    be started twice; and one of another cell keeps its cell.
    """
    late, early = (evolve(builders.trigger(), id=id) for id in (new, old))
    assert cell_of(start_id(late, at)) == cell_of(new)
    assert cell_of(start_id(early, at)) is None
    assert cell_of(id_for(f"redrive of {new}")) == cell_of(new)
    assert cell_of(notice_id(NoticeKind.APPROVAL_OPENED, "mail", "a@b.org", new, at)) == cell_of(
        new
    )


def test_ids_of_causes_from_before_cells_stay_the_same():
    """What was started or told under such an id is not started or told again."""
    old = "exec_019ab1d7c8100004f2c0ffee01"
    assert id_for(f"redrive of {old}") == "exec_74db54eeb7100a6dfcde016211"
    assert caused_id("ntc", "0" * 32, old) == "ntc_" + "0" * 32


def test_more_ids_than_a_millisecond_has_numbers_go_on_with_the_next():
    """None comes twice, all have the cell, and they still ascend."""
    ids = SystemIds("m3")
    made = [ids.new("exec", EpochMs(7)) for _ in range(COUNTS + 2)]
    assert made == sorted(set(made))
    assert {cell_of(one) for one in made} == {"m3"}
    assert made[-1].startswith("exec_00000000008001")
    assert cell_of(SystemIds().new("exec", EpochMs(7))) == FIRST_CELL


@pytest.mark.parametrize(
    "text", ["f0", "k", "k0a", "K0", "k-", "0k", "k0\n", "k\u0660", " k0", "kß"]
)
def test_a_cell_that_no_id_could_have_is_refused(text):
    """The error names the setting and its form: a mistyped cell would stay in ids for ever."""
    with pytest.raises(InvalidInput, match="letter from g to z") as refused:
        settings_from({"WFCORE_CELL": text})
    assert refused.value.field == "WFCORE_CELL"


@given(cells)
def test_every_other_cell_is_taken(cell):
    """One setting; without it there is the first cell."""
    assert settings_from({"WFCORE_CELL": cell}).cell == cell
    assert settings_from({}).cell == settings_from({"WFCORE_CELL": ""}).cell == FIRST_CELL
