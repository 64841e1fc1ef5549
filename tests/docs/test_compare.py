"""The page for those who choose a service: every product in each table, claims with addresses."""

import re
from urllib.parse import urlsplit

import pytest

from .pages import DOCS

PRODUCTS = ["wfcore", "n8n", "Windmill", "Kestra", "Prefect", "Temporal", "DBOS", "Camunda"]
PAGE = (DOCS / "compare.md").read_text()
SECTIONS = dict(re.findall(r"^## (.+)\n\n((?:\|.+\n)+)", PAGE, re.M))
_LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")


def test_what_is_lacking_stands_first() -> None:
    """Whoever chooses reads first what they will not find; and of which day the page is."""
    assert re.findall(r"^## (.+)$", PAGE, re.M)[0] == "What wfcore lacks"
    assert re.search(r"read on \d{4}-\d{2}-\d{2}", PAGE)
    assert len(SECTIONS) == 6


@pytest.mark.parametrize("section", SECTIONS)
def test_every_product_is_in_every_table(section: str) -> None:
    """All of them, in the same order, with something said; other products by a public address."""
    rows = [line.strip("| ").split(" | ") for line in SECTIONS[section].strip().split("\n")[2:]]
    assert [row[0] for row in rows] == PRODUCTS
    for product, *cells in rows:
        (said,) = cells
        assert len(said) > 2, product
        if product != "wfcore":
            links = _LINK.findall(said)
            assert links, product
            for link in links:
                url = urlsplit(link)
                assert (url.scheme, "." in (url.hostname or "")) == ("https", True), link
                assert (url.query, url.username) == ("", None), link
