"""The figures in `docs/how-it-works.md` are those of the code."""

import re

from architecture import measure

FILES = {"start by API": 30, "approve with edited rows": 38, "expiry of an approval": 30}
"""The most files that somebody opens who follows a request."""


def rows(text: str) -> dict[str, list[int]]:
    """The figures of each walk in a table."""
    found = re.findall(r"^\| ([a-z ]+) \| ([0-9 |]+) \|$", text, re.M | re.I)
    return {name: [int(one) for one in cells.split(" | ")] for name, cells in found}


async def test_the_page_has_the_figures_of_today() -> None:
    """Files, what is stored and shapes exactly; calls within a tenth."""
    traces = {name: await measure.traced(walk) for name, walk in measure.WALKS.items()}
    today, page = measure.table(traces), measure.PAGE.read_text()
    assert today.splitlines()[-1] in page, "make tables"
    shown = rows(page)
    for name, figures in rows(today).items():
        files, functions, changes, stored, _ = figures
        assert files <= FILES[name], f"{name}: `make trace`; what is new belongs to a neighbour"
        assert (shown[name][0], shown[name][3]) == (files, stored), f"{name}: make tables"
        for now, before in ((functions, shown[name][1]), (changes, shown[name][2])):
            assert abs(now - before) <= before / 10, f"{name}: make tables"


def test_the_files_that_answer_a_newcomer_are_there() -> None:
    """Every file that the page names under "Where to look" exists."""
    named = re.findall(r"^\| .+\? \| `([a-z_/]+\.py)` \|$", measure.PAGE.read_text(), re.M)
    assert len(named) == 6
    assert [path for path in named if not (measure.ROOT / path).is_file()] == []
