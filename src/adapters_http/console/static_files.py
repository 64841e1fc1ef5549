"""
Styles and scripts, at addresses with a hash of all files. A file at such an address never changes,
so browsers store it for good, and modules that import each other by name belong to one version.
"""

import gzip
import re
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path

from attrs import frozen
from starlette.responses import Response

from adapters_http.request import Request
from wfcore.errors import NotFound
from wfcore.wire.languages import translations

_FOLDER = Path(__file__).parent / "static"
_MEDIA = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_KEPT = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}


@frozen
class _File:
    media: str
    plain: bytes
    small: bytes


@frozen
class _Files:
    hash: str
    by_name: dict[str, _File]


@cache
def files() -> _Files:
    """All files, read and compressed once, when the first page is rendered."""
    found = {path.name: path for path in sorted(_FOLDER.iterdir()) if path.suffix in _MEDIA}
    contents = {name: path.read_bytes() for name, path in found.items()}
    digest = sha256(b"\0".join(name.encode() + b"\0" + text for name, text in contents.items()))
    made = {
        name: _File(_MEDIA[found[name].suffix], text, gzip.compress(_bare(name, text), 9, mtime=0))
        for name, text in contents.items()
    }
    return _Files(digest.hexdigest()[:16], made)


_UNSEEN = re.compile(
    rb"^\s*//.*\n|^\s*/\*\*(?:.|\n)*?\*/\n|^\s+|(?<=[{};,([])\n\s*(?!\s|//|/\*)| (?==>)|(?<==>) ",
    re.MULTILINE,
)


_CSS_UNSEEN = re.compile(rb"(?:/\*(?:.|\n)*?\*/|\s)+")
_CSS_BLANK = re.compile(rb" ?([{};,]) ?|(?<=[a-z-]:) (?=[^{};]*;)")


_LITERALS = re.compile(
    rb"""("(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`"""
    rb"|(?:(?<=[(,=:[!&|?{};>])|(?<=[(,=:[!&|?{};>] ))"
    rb"/(?![*/])(?:[^/\\\n[]|\\.|\[(?:[^\]\\]|\\.)*\])+/[a-z]*)"
)
"""The pattern of texts, templates and regular expressions, in which blanks are significant."""
_SPACED = re.compile(
    rb";(?= ?\})"
    rb"| ?([=!]==?|&&=?|\|\|=?|\?\?=?|[-+*<>]=|[?:=,*<>[\]{()}]|(?<!\+)\+(?!\+)|(?<!-)-(?!-)) ?"
)


AS_WRITTEN = frozenset({"codemirror.js", "definition_mode.js"})
"""Scripts that are served as they are: a bundle, and one whose regular expressions hold quotes."""


def _bare(name: str, text: bytes) -> bytes:
    """
    A script or style without comments, indentation, needless line ends and needless blanks: a fifth
    smaller.
    """
    if name.endswith(".css"):
        return _CSS_BLANK.sub(rb"\1", _CSS_UNSEEN.sub(b" ", text))
    if name in AS_WRITTEN or not name.endswith(".js"):
        return text
    parts = _LITERALS.split(_UNSEEN.sub(b"", text))
    return b"".join(
        part if place % 2 else _SPACED.sub(rb"\1", part) for place, part in enumerate(parts)
    )


async def send(request: Request) -> Response:
    """One file. Raises `NotFound`, also for a file of another version of this server."""
    file = files().by_name.get(request.params["name"])
    if file is None or request.params["hash"] != files().hash:
        raise NotFound("File")
    if "gzip" in (request.header(b"accept-encoding") or ""):
        headers = {**_KEPT, "Content-Encoding": "gzip"}
        return Response(file.small, headers=headers, media_type=file.media)
    return Response(file.plain, headers=_KEPT, media_type=file.media)


_LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


@cache
def script_words(language: str) -> Mapping[str, str]:
    """The texts of scripts in *language*, by the English text; empty for English."""
    known = translations(language).gettext
    scripts = (path.read_text() for path in _FOLDER.glob("*.js"))
    texts = {text for script in scripts for text in _LITERAL.findall(script)}
    return {text: known(text) for text in sorted(texts) if text and known(text) != text}
