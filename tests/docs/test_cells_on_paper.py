"""The model of many cells: its arithmetic, not its inputs."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.cells import BUSY, CORES, STEP_MS, first_limit, limits, plan, steps_share, waiting_ms

PAGE = Path(__file__).parents[2] / "docs/explanation/cells.md"
rates = st.integers(1, 10**6)


@given(rates)
def test_no_cell_is_busier_than_it_may_be(rate):
    """And one cell less would not do."""
    found = plan(rate)
    assert rate / found.cells <= first_limit()
    assert found.cells == 1 or rate / (found.cells - 1) > first_limit()
    assert rate * STEP_MS / 1_000 <= found.steps * CORES * BUSY * (1 + 1e-9)
    assert found.machines == found.databases + found.servers + found.steps
    assert first_limit() in limits().values()


@given(st.floats(1, 999), st.floats(0.001, 0.999))
def test_one_server_waits_as_long_as_the_textbook_says(service_ms, busy):
    """M/M/1: the load, over what is free, in times of service."""
    rate = busy * 1_000 / service_ms
    assert waiting_ms(rate, 1, service_ms) == pytest.approx(service_ms * busy / (1 - busy))


@given(st.integers(1, 200), st.floats(0.01, 0.98), st.floats(0.001, 0.01))
def test_more_load_waits_longer_and_more_servers_shorter(servers, busy, more):
    """Up to a full house, where the wait has no end."""
    rate = busy * servers * 1_000
    wait = waiting_ms(rate, servers, 1)
    assert 0 <= wait <= waiting_ms((busy + more) * servers * 1_000, servers, 1)
    assert waiting_ms(rate, servers + 1, 1) <= wait
    assert waiting_ms(servers * 1_000, servers, 1) == math.inf


def test_the_page_begins_with_the_steps():
    """What a reader needs to know first: there is more to save there than anywhere else."""
    text = PAGE.read_text("utf-8").split("\n\n")[1]
    assert text.startswith("What executions cost is the processes of their steps.")
    assert steps_share() > 0.5
