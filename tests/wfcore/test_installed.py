"""What says how to add an extra never sends anybody to an index."""

import json
from pathlib import Path
from typing import Any

import pytest

from wfcore import installed
from wfcore.errors import MissingExtra

HERE = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("where", "said"),
    [
        (None, "'path/to/wfcore[server]'"),
        ("file:///nowhere/at/all", "'path/to/wfcore[server]'"),
        ("https://example.org/wfcore-1-py3-none-any.whl", "'path/to/wfcore[server]'"),
        (HERE.as_uri(), f"'{HERE}[server]'"),
    ],
)
def test_a_cure_names_where_the_program_came_from(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, where: str | None, said: str
) -> None:
    """The folder or wheel if it is there, otherwise a word for it: the bare name is nobody's."""
    if where is not None:
        noted = tmp_path / "wfcore-1.dist-info" / "direct_url.json"
        noted.parent.mkdir()
        noted.write_text(json.dumps({"url": where}))
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    installed._source.cache_clear()
    assert installed.install("server") == f"pip install {said}"
    installed._source.cache_clear()


def test_no_text_of_the_program_names_the_bare_project() -> None:
    """Whoever writes a new cure takes it from `install`."""
    assert "pip install 'path/to/wfcore[server]'" in str(MissingExtra("it", "server"))
    found: list[Any] = [
        path
        for path in (HERE / "src").rglob("*.py")
        if "pip install 'wfcore" in (text := path.read_text()) or 'pip install "wfcore' in text
    ]
    assert not found
