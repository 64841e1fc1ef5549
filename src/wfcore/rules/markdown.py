"""
Markdown of a small, safe kind: paragraphs, line breaks, bold, italics, code, lists, tables, and
http(s) links with their host beside them. Headings are bold lines; images, HTML and all else are
text. MD-1, decision 251.

Every text is escaped for HTML before tags are put around it, so no tag comes from a text. In values
that templates insert, a backslash precedes each character with a meaning (`escaped`), and the
character then has none, in code as well, where other backslashes are plain text.

Anybody who starts an execution supplies text, so the work grows with its length and no faster.
Every repeat in a pattern is bounded or possessive: it never backtracks. MD-4, decision 251.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from urllib.parse import urlsplit

TITLE = 120
"""Characters of a title."""
LONGEST = 20_000
"""The characters in which marks count; later text is shown as it is."""
_OF_A_TITLE = 10 * TITLE
"""The characters of a line, marks included, from which a title is made."""
_SIGNS = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_[]()#+-.!|<>:&~="})
_UNESCAPED = re.compile(r"\\([\\`*_\[\]()#+\-.!|<>:&~=])")
_INLINE = re.compile(
    r"""\\(?P<sign>[\\`*_\[\]()\#+\-.!|<>:&~=])
    | (?P<image>!\[(?:\\.|[^\[\]\\\n]){0,1000}\]\((?:\\.|[^()\s\\]){0,2000}\))
    | `(?P<code>(?:\\.|[^`\\\n]){1,500})`
    | \[(?P<label>(?:\\.|[^\[\]\\\n]){1,1000})\]\((?P<url>(?:\\.|[^()\s\\]){1,2000})\)
    | <?(?P<address>https?://[^\s<>"'`*|\\()\[\]]{1,2000})>?
    | \*\*(?=[^\s*])(?P<strong>(?:\\.|[^\\*]){1,500})(?<!\s)\*\*
    | \*(?=[^\s*])(?P<em>(?:\\.|[^\\*]){1,500})(?<!\s)\*
    | (?<![^\W_])__(?=[^\s_])(?P<strong_>(?:\\.|[^\\_]){1,500})(?<!\s)__(?![^\W_])
    | (?<![^\W_])_(?=[^\s_])(?P<em_>(?:\\.|[^\\_]){1,500})(?<!\s)_(?![^\W_])
    """,
    re.VERBOSE | re.DOTALL,
)
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]++(.*+)")
_ITEM = re.compile(r"( ?)(?:[-*+]|(\d{1,9})[.)])[ \t]++(?=\S)")
_LINE_END = re.compile(r"\r\n|\r|\n")
_FENCE = re.compile(r" {0,3}(`{3,}+|~{3,}+)[^`]*+$")
_RULER = re.compile(r"[ \t]*+\|?+(?:[ \t]*+:?+-++:?+[ \t]*+\|)++(?:[ \t]*+:?+-++:?+[ \t]*+)?+$")
_CELLS = re.compile(r"(?:\\.|[^|\\])*+")
_DEEPEST = 6
_TRAILING = ".,;:!?"


def escaped(text: str) -> str:
    """*text* as Markdown that shows *text* unchanged."""
    return text.translate(_SIGNS)


def _unescaped(text: str) -> str:
    return "".join(_UNESCAPED.split(text))  # several times as fast as `sub`


def _lines(text: str) -> list[str]:
    """The lines of *text*. Unicode's other line separators count as visible characters."""
    return _LINE_END.split(_LINE_END.sub("\n", text).removesuffix("\n"))


def title(markdown: str) -> str:
    """The first line that is not blank, without markup, cut at `TITLE` characters. MD-2."""
    line = first_line(markdown)[:_OF_A_TITLE]
    found = _ITEM.match(line)
    text = line[found.end() :] if found else _bare(line)
    text = " ".join(_plain(text).split())
    return text if len(text) <= TITLE else f"{text[: TITLE - 1]}…"


def first_line(markdown: str) -> str:
    """The first line that is not blank, unchanged; for a code block, its first line."""
    lines = (line for line in _lines(markdown) if line.strip() and not _FENCE.match(line))
    return next(lines, "")


def below_title(markdown: str) -> str:
    """The part of the text to show below the title; empty if the title already shows all of it."""
    line = first_line(markdown[:LONGEST])
    before, _, rest = markdown.partition(line) if line else ("", "", "")
    says_more = _ITEM.match(line) or "|" in line or "](" in line or "://" in line
    if not line or len(line) > _OF_A_TITLE or says_more or before.strip():
        return markdown
    whole = " ".join(_plain(_bare(line)).split()) == title(line)
    return rest.strip("\r\n") if whole else markdown


def plain(markdown: str) -> str:
    """The text without markup, line by line; the host of a link follows its words."""
    lines = (line for line in _lines(markdown) if not _FENCE.match(line))
    return "\n".join(_plain(_bare(line)) for line in lines if not _RULER.match(line))


def _bare(line: str) -> str:
    """A line without the signs of a heading."""
    found = _HEADING.match(line)
    return found[1].rstrip(" \t#") if found else line


def html(markdown: str) -> str:
    """The blocks as HTML, whose only attributes are `href`, `rel`, `class` and `start`."""
    blocks = "".join(_blocks(_lines(markdown[:LONGEST]), 0))
    rest = _unescaped(markdown[LONGEST:])
    return f"{blocks}<p>{_text(rest)}</p>" if rest else blocks


def _blocks(lines: Sequence[str], depth: int) -> Iterator[str]:
    at, text, closings = 0, list[str](), _closings(lines)
    while at < len(lines):
        block, end = _block(lines, at, depth, closings.get(at))
        if block is None and lines[at].strip():
            text.append(lines[at].strip())
            at += 1
            continue
        yield from _paragraph(text)
        text.clear()
        yield block or ""
        at = end
    yield from _paragraph(text)


def _paragraph(lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield f"<p>{_inline(chr(10).join(lines))}</p>"


def _block(
    lines: Sequence[str], at: int, depth: int, closing: int | None
) -> tuple[str | None, int]:
    """
    The block that begins at line *at*, and the line where the next block begins; None for a line of
    text, or a blank line. *closing*: the line that ends the code block which begins there.
    """
    line = lines[at]
    if _HEADING.match(line):
        return f"<p><strong>{_inline(_bare(line))}</strong></p>", at + 1
    if closing is not None:
        code = escape(_unescaped("\n".join(lines[at + 1 : closing])))
        return f"<pre><code>{code}</code></pre>", closing + 1
    if "|" in line and at + 1 < len(lines) and _RULER.match(lines[at + 1]):
        return _table(lines, at)
    if depth < _DEEPEST and _ITEM.match(line):
        return _list(lines, at, depth)
    return None, at + 1


def _closings(lines: Sequence[str]) -> Mapping[int, int]:
    """
    The lines that end code blocks, by the lines that begin them: found in one pass, from the last
    line up.
    """
    found, below = dict[int, int](), dict[str, int]()
    for at in range(len(lines) - 1, -1, -1):
        fence = _FENCE.match(lines[at])
        if fence and fence[1] in below:
            found[at] = below[fence[1]]
        below[lines[at].strip()] = at
    return found


def _table(lines: Sequence[str], at: int) -> tuple[str, int]:
    end = at + 2
    while end < len(lines) and "|" in lines[end]:
        end += 1
    head, width = _row(lines[at], "th"), len(_cells(lines[at]))
    rows = "".join(_row(line, "td", width) for line in lines[at + 2 : end])
    table = f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"
    return f'<div class="scroll">{table}</div>', end


def _cells(line: str) -> Sequence[str]:
    inside = line.strip().removeprefix("|")
    cells = [found[0] for found in _CELLS.finditer(inside) if found.end() > found.start()]
    return cells[:-1] if cells and not cells[-1].strip() else cells


def _row(line: str, tag: str, width: int | None = None) -> str:
    """
    A row of at most *width* cells. Short rows stay short: if they were filled, few characters would
    make many cells.
    """
    cells = _cells(line)[:width]
    return f"<tr>{''.join(f'<{tag}>{_inline(cell.strip())}</{tag}>' for cell in cells)}</tr>"


def _list(lines: Sequence[str], at: int, depth: int) -> tuple[str, int]:
    """The items of one kind. Text that is indented below an item belongs to it."""
    first = _ITEM.match(lines[at])
    assert first is not None
    number, items = first[2], list[list[str]]()
    while at < len(lines):
        line = lines[at]
        found = _ITEM.match(line)
        if found and (found[2] is None) == (number is None):
            items.append([line[found.end() :]])
        elif line.strip() and line[:2].strip() == "":
            items[-1].append(line[2:])
        else:
            break
        at += 1
    inside = "".join(f"<li>{_item(item, depth)}</li>" for item in items)
    if number is None:
        return f"<ul>{inside}</ul>", at
    start = f' start="{int(number)}"' if int(number) != 1 else ""
    return f"<ol{start}>{inside}</ol>", at


def _item(lines: Sequence[str], depth: int) -> str:
    found = "".join(_blocks([line.removeprefix(" ") for line in lines], depth + 1))
    only = found.startswith("<p>") and found.count("<p>") == 1
    return found.replace("<p>", "", 1).replace("</p>", "", 1) if only else found


def _inline(text: str) -> str:
    """Marks within a block, as HTML."""
    made, at = list[str](), 0
    for found in _INLINE.finditer(text):
        made += (_text(text[at : found.start()]), _mark(found))
        at = found.end()
    return "".join((*made, _text(text[at:])))


def _text(text: str) -> str:
    return escape(text).replace("\n", "<br>")


def _mark(found: "re.Match[str]") -> str:
    kind, inside = _kind_of(found)
    match kind:
        case "sign":
            return escape(inside)
        case "code":
            return f"<code>{escape(_unescaped(inside))}</code>"
        case "label":
            return _link(escape(_plain(inside)), _unescaped(found["url"]), found[0])
        case "address":
            rest = inside[len(inside.rstrip(_TRAILING)) :]
            url = inside.removesuffix(rest)
            return _link(escape(url), url, url) + escape(rest)
        case "strong" | "em":
            return f"<{kind}>{_inline(inside)}</{kind}>"
    return _text(inside)


def _kind_of(found: "re.Match[str]") -> tuple[str, str]:
    """The kind of a mark, and the text inside."""
    kind = next(name for name, text in found.groupdict().items() if text is not None)
    return kind.removesuffix("_"), found[kind]


def _link(label: str, url: str, written: str) -> str:
    """A link with its host; *written* if *url* is no http(s) address."""
    host = host_of(url)
    if host is None:
        return _text(written)
    link = f'<a href="{escape(url)}" rel="noopener noreferrer nofollow">{label}</a>'
    return f'{link} <span class="host">({escape(host)})</span>'


def host_of(url: str) -> str | None:
    """The host of an http(s) address, as browsers request it; None for another address."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
        host = host if host.isascii() else host.encode("idna").decode()
    except ValueError:
        return None
    fits = parts.scheme in ("http", "https") and url.isprintable() and "\\" not in url
    return host if fits and host else None


def _plain(text: str) -> str:
    """A line without marks."""
    made, at = list[str](), 0
    for found in _INLINE.finditer(text):
        made += (text[at : found.start()], _said(found))
        at = found.end()
    return "".join((*made, text[at:]))


def _said(found: "re.Match[str]") -> str:
    kind, inside = _kind_of(found)
    match kind:
        case "code":
            return _unescaped(inside)
        case "label":
            host = host_of(_unescaped(found["url"]))
            return found[0] if host is None else f"{_plain(inside)} ({host})"
        case "strong" | "em":
            return _plain(inside)
    return inside
