"""
What the build adds to the metadata of the package: its description, with links that work.

The README links to its neighbours by relative paths. A package index shows it alone, where such a
path leads nowhere. So the description links to the sources of this version at `home`, the address
of the public repository in `pyproject.toml`; as long as that is empty, it keeps the words of the
links and leaves out pictures, and no project addresses are given: a link to a stranger's repository
is worse than none.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(?P<is_picture>!?)\[(?P<words>[^\]]*)\]\((?P<path>(?![a-z]+:|#)[^)\s]+)\)")
_PICTURE = re.compile(r"^!\[[^\]]*\]\((?![a-z]+:)[^)\s]+\)\n\n", re.MULTILINE)


class Description(MetadataHookInterface):
    """Writes `readme` and `urls`."""

    def update(self, metadata: dict[str, Any]) -> None:
        home, tag = self.config["home"].rstrip("/"), f"v{metadata['version']}"
        text = Path(self.root, "README.md").read_text("utf-8")
        shown = linked(text, home, tag) if home else unlinked(text)
        metadata["readme"] = {"content-type": "text/markdown", "text": shown}
        metadata["urls"] = addresses(home, tag) if home else {}


def linked(text: str, home: str, tag: str) -> str:
    """*text* with links to its neighbours as they are in the version *tag* at *home*."""

    def absolute(link: re.Match[str]) -> str:
        kind = "raw" if link["is_picture"] else "blob"
        return f"{link['is_picture']}[{link['words']}]({home}/{kind}/{tag}/{link['path']})"

    return _LINK.sub(absolute, text)


def unlinked(text: str) -> str:
    """*text* with the words of such links alone, and without its own pictures."""
    return _LINK.sub(r"\g<words>", _PICTURE.sub("", text))


def addresses(home: str, tag: str) -> dict[str, str]:
    """The addresses that an index shows beside the description."""
    return {
        "Source": home,
        "Documentation": f"{home}/blob/{tag}/docs/index.md",
        "Changelog": f"{home}/blob/{tag}/CHANGELOG.md",
        "Issues": f"{home}/issues",
    }
