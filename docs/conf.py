"""Sphinx: `make docs` builds the pages, with the reference written from the tables first."""

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import wfcore  # noqa: E402

project = "wfcore"
author = "the wfcore authors"
project_copyright = "the wfcore authors, MIT license"
version = release = wfcore.__version__

extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "wfdocs"]
nitpicky = True
html_theme = "furo"
html_title = f"wfcore {release}"
html_static_path: list[str] = []
html_show_sourcelink = False
html_copy_source = False
highlight_language = "none"


def setup(app: Any) -> None:
    """Write the reference, and teach Sphinx what the pages use."""
    from pygments.lexers.special import TextLexer

    app.add_lexer("mermaid", TextLexer)
