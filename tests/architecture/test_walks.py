"""The figures in `docs/how-it-works.md` are those of the code."""

import re

from . import measure


def rows(text: str) -> dict[str, list[int]]:
    """The figures of each walk in a table."""
    found = re.findall(r"^\| ([a-z ]+) \| ([0-9 |]+) \|$", text, re.M | re.I)
    return {name: [int(one) for one in cells.split(" | ")] for name, cells in found}


async def test_the_page_has_the_figures_of_today() -> None:
    """What is stored, and shapes, exactly; files and calls within a tenth."""
    traces = {name: await measure.traced(walk) for name, walk in measure.WALKS.items()}
    today, page = measure.table(traces), measure.PAGE.read_text()
    assert today.splitlines()[-1] in page, "make tables"
    shown = rows(page)
    for name, figures in rows(today).items():
        assert figures[3] == shown[name][3], f"{name}: make tables"
        for now, before in zip(figures[:3], shown[name][:3], strict=True):
            assert abs(now - before) <= before / 10, f"{name}: make tables"


def test_the_files_that_answer_a_newcomer_are_there() -> None:
    """Every file that the page names under "Where to look" exists."""
    named = re.findall(r"^\| .+\? \| `([a-z_/]+\.py)` \|$", measure.PAGE.read_text(), re.M)
    assert len(named) == 6
    assert [path for path in named if not (measure.ROOT / path).is_file()] == []
