"""
The pictures of the documentation, each drawn from the table that it shows.

A page shows one like any image, `![what it says](pictures/life.svg)`, from the file that
`make tables` writes; so it is seen where Markdown is read as it is. A build draws it again and puts
it into the page itself, where it follows the theme switch and a screen reader finds its text.

Boxes and lines are placed here, as pure functions of the tables: Mermaid needs a script in the
page, and a layout of Graphviz changes with its version, so its files could not be compared.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial

from wfcore.rules.states import MACHINES
from wfdocs.pictures import layers, machines, walks
from wfdocs.pictures.svg import Picture, render

PICTURES: Mapping[str, Callable[[], Picture]] = {
    **{name: partial(machines.draw, machine) for name, machine in MACHINES.items()},
    "life": walks.life,
    "start": walks.start,
    "architecture": layers.architecture,
    "isolation": layers.isolation,
}

_IMAGE = re.compile(r"^!\[[^\]]*\]\((?:\.\./)*(?:docs/)?pictures/(\w+)\.svg\)$", re.MULTILINE)


def svg_of(name: str) -> str:
    """A picture as SVG."""
    return render(PICTURES[name]())


def inlined(page: str) -> str:
    """A page with its pictures inside. Raises `KeyError` for a picture that does not exist."""
    return _IMAGE.sub(lambda found: _figure(found[1]), page)


def _figure(name: str) -> str:
    return f'```{{raw}} html\n<figure class="picture">{svg_of(name)}</figure>\n```'
