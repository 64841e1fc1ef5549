"""What pages load: every module and style that a page comes to, as it is sent. B2, B4."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapters_http.app import HttpConfig
from adapters_http.console.routes import PAGES
from adapters_http.console.static_files import files
from wfcore.rules.auth.signed_links import personal_token

from .approval_case import Case, both
from .conftest import Site
from .test_editing import read
from .test_executions import Reader
from .test_targets import addresses

KB = 1_024
EDITOR = (130, 133)
"""The most of the editor of definitions, which no other page loads."""
ONLY_LEAD_ON = {
    "/",
    "/operate",
    "/start/runs/{id}",
    "/sign-in/provider",
    "/sign-in/back",
    "/executions/{id}/compare",
}
"""Pages that send the reader elsewhere, here or where something is set up for it."""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path, HttpConfig(console=True, read_definition=read))
    yield made
    made.close()


def modules(*names: str, late: bool = False) -> set[str]:
    """These scripts and all that they import; *late*: also what is fetched when it is needed."""
    found, rest = set[str](), list(names)
    while rest:
        if (name := rest.pop()) not in found:
            found.add(name)
            text = files().by_name[name].plain.decode()
            rest += re.findall(r'from "\./([\w.]+)"', text)
            rest += re.findall(r'import\("\./([\w.]+)"\)', text) if late else []
    return found


def weight(names: set[str]) -> int:
    return sum(len(files().by_name[name].small) for name in names)


def test_every_page_is_light(site: Site):
    """
    3 KB of scripts on each page, an approval 14 KB; with the first key 4.5 KB, and an approval that
    is touched 21.5 KB; the editor of definitions 130 KB. B2.
    """
    paths = [*approvals(site), *addresses(site), "/sign-in", "/account"]
    ann, nobody, link = Reader(site), Reader(site, None), site.link().removeprefix(site.url)
    paths.append(link)
    paths += [f"{path}/0" for path in paths if path.endswith("/steps/bank_limit")]
    used = set[str]()
    for path in paths:
        html = (nobody if path in ("/sign-in", link) else ann).get(path).text
        assert not re.search(r" style=| onclick=|<script>", html), path
        names = re.findall(r'(?:src|href)="/static/\w+/([\w.]+)"', html)
        scripts = [name for name in names if name.endswith(".js")]
        used |= modules(*scripts, late=True)
        approval = re.match("/approvals/appr_|/a/", path)
        most, late = EDITOR if "editor.js" in scripts else (14, 21.5) if approval else (3, 4.5)
        assert weight(modules(*scripts)) <= most * KB, path
        assert weight(modules(*scripts, late=True)) <= late * KB, path
        styles = weight({name for name in names if name.endswith(".css")})
        assert styles <= (10 if "editor.css" in names else 8) * KB, path
    pages = {one.path for one in PAGES if one.html and one.method == "GET"} - ONLY_LEAD_ON
    known = [path.partition("?")[0] for path in paths]
    assert {page for page in pages if not any(_is(page, path) for path in known)} == set()
    assert used == {name for name in files().by_name if name.endswith(".js")}
    assert weight(used - modules("editor.js") | modules("app.js")) <= 60 * KB
    assert weight({"icons.svg"}) <= 4 * KB


def approvals(site: Site) -> list[str]:
    """With rows and without, decided, by a personal link, several, and what a run's end stops."""
    rows, plain, decided = Case(site, 2), Case(site, 0, **both()), Case(site, 1)
    decided.decide(site.world.ann)
    token = personal_token(site.world.services.signing_key, plain.now(), plain.bob.email)
    return [
        *(f"/approvals/{one.id}" for one in (rows, plain, decided)),
        *(f"/a/{token}", f"/inbox/decide?id={rows.id}"),
        f"/executions/cancel?id={rows.execution_id}",
    ]


def _is(page: str, path: str) -> bool:
    return re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", page), path) is not None
