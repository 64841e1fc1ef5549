"""Sphinx: `make docs` builds the pages, with the reference written from the tables first."""

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FOLDERS = (".", "tutorial", "howto", "explanation")
sys.path.insert(0, str(HERE.parent / "tools"))

import wfcore  # noqa: E402

project = "wfcore"
author = "the wfcore authors"
project_copyright = "the wfcore authors, MIT license"
version = release = wfcore.__version__

extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
nitpicky = True
suppress_warnings = ["myst.header"]  # a page may leave a level of headings out
html_theme = "furo"
html_title = f"wfcore {release}"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_show_sourcelink = False
html_copy_source = False
highlight_language = "none"


def setup(app: Any) -> None:
    """Write the reference before the pages are read, and draw the pictures into them."""
    from wfdocs import reference

    app.connect("builder-inited", lambda _: reference.write(HERE / "reference"))
    app.connect("source-read", with_pictures)
    app.connect("source-read", with_further_pages)
    app.connect("html-page-context", with_places_to_break)


def with_pictures(app: Any, page: str, source: list[str]) -> None:
    """Pictures are drawn into the page, so that they follow the theme and load nothing."""
    from wfdocs import pictures

    source[0] = pictures.inlined(source[0])


def with_places_to_break(app: Any, page: str, template: str, context: Any, tree: Any) -> None:
    """Long names in tables fit a phone."""
    from wfdocs.markdown import breakable

    if "body" in context:
        context["body"] = breakable(context["body"])


def with_further_pages(app: Any, page: str, source: list[str]) -> None:
    """The contents list every page, also one that nobody has put into its place."""
    if page != "index":
        return
    paths = (path for folder in FOLDERS for path in sorted((HERE / folder).glob("*.md")))
    names = [str(path.relative_to(HERE).with_suffix("")) for path in paths]
    further = [name for name in names if name != "index" and f"\n{name}\n" not in source[0]]
    if further:
        listed = "\n".join(further)
        source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: More\n\n{listed}\n```\n"
