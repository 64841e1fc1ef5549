"""What the documentation tells to do works, as it is written."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.distribution import program
from tests.support.postgres_server import Cluster
from tests.system.scenarios.process import free_port

from .pages import BESIDE, DOCS, FAILS, NOT_RUN, ROOT, STOPPED, Reader, blocks

FOLDERS = ("tutorial", "howto", "explanation")
PAGES = [
    *sorted(path for folder in FOLDERS for path in (DOCS / folder).glob("*.md")),
    DOCS / "simulator.md",
    DOCS / "testing.md",
]
ON_POSTGRES = ("back-up-postgresql", "several-machines")
DATABASES = ("again", "flows")
SHOWN = ("text", "json", "http")
DONE = ("bash", "python")


def name(path: Path) -> str:
    return str(path.relative_to(DOCS))


@pytest.fixture
def machines(
    server: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, str]]:
    """What two machines share, and addresses for what runs on them."""
    for needed in ("psql", "pg_dump", "pg_restore"):
        program(needed, "postgresql-client")
    program("caddy", "caddy")
    for kind in ("CONFIG", "DATA"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(tmp_path / kind))
    yield {
        "postgresql://postgres@db.example.org": server.url("postgres"),
        **{f"@db.example.org/{name}": f"@/{name}?host={server.folder}" for name in DATABASES},
        "/srv/wfcore": str(tmp_path / "srv"),
        "8001": str(free_port()),
        ":8080": f":{free_port()}",
    }
    for name in DATABASES:
        server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
    server.execute("DROP ROLE IF EXISTS flows")


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_page_does_what_it_says(
    page: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Files are written, commands run in order; tutorials need nothing but package and page."""
    here = request.getfixturevalue("machines") if page.stem in ON_POSTGRES else None
    reader = Reader(tmp_path, examples=page.parent.name != "tutorial", here=here)
    try:
        reader.follow(page)
    finally:
        reader.end()


def test_pages_install_what_exists() -> None:
    """Until there is a release, nobody is sent to an index, where others could use the name."""
    assert "(unreleased)" in (ROOT / "CHANGELOG.md").read_text()
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.glob("*.md"), *DOCS.glob("*/*.md")]
    for page in pages:
        if page.parent.name not in ("decisions", "reference"):
            found = set(re.findall(r"pip install ([\w./]*wfcore)\S*", unquoted(page.read_text())))
            assert found <= {"path/to/wfcore"}, page


def unquoted(text: str) -> str:
    """Without quotation marks."""
    return text.replace("'", "").replace('"', "")


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_block_is_a_file_a_command_or_shown_on_purpose(page: Path) -> None:
    """No code stands in a page that nobody has ever run."""
    for block in blocks(page):
        known = block.file is not None or block.language in (*SHOWN, *DONE)
        assert known, f"{page}:{block.line} is neither a file nor run nor shown"
        assert block.note in ("", BESIDE, FAILS, *STOPPED) or block.note.startswith(NOT_RUN), (
            block.note
        )
