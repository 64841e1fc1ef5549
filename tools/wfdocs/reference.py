"""Writing the reference, one function for each page. `make docs` calls `write` first."""

from collections.abc import Callable, Mapping
from pathlib import Path

from wfdocs import commands, core, http, specification

PAGES: Mapping[str, Callable[[], str]] = {
    "specification": specification.page,
    "routes": http.routes_page,
    "errors": http.errors_page,
    "cli": commands.cli_page,
    "vocabulary": core.vocabulary_page,
    "rules": core.rules_page,
    "public": core.public_page,
}


def write(folder: Path) -> None:
    """Write all pages into *folder* and remove other files; an unchanged file keeps its time."""
    folder.mkdir(exist_ok=True)
    for path in folder.glob("*.md"):
        if path.stem not in PAGES:
            path.unlink()
    for name, page in PAGES.items():
        path, text = folder / f"{name}.md", page()
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
