"""Markdown of a small safe kind: what it shows, and that nothing else comes out of it."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from re import _constants, _parser  # type: ignore[attr-defined]

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wfcore.rules import markdown
from wfcore.rules.markdown import TITLE, below_title, escaped, html, plain, title

HOST = '<span class="host">({})</span>'
LINK = '<a href="{}" rel="noopener noreferrer nofollow">{}</a> ' + HOST
SIGNS = st.text("ab \n\t*_`[]()#+-.!|<>:&\\\\~=\"'/1x", max_size=120)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("one\ntwo\n\nthree", "<p>one<br>two</p><p>three</p>"),
        (
            "**a** *b* __c__ _d_",
            "<p><strong>a</strong> <em>b</em> <strong>c</strong> <em>d</em></p>",
        ),
        ("snake_case_name", "<p>snake_case_name</p>"),
        ("## Head #", "<p><strong>Head</strong></p>"),
        ("`a<b`", "<p><code>a&lt;b</code></p>"),
        ("```\n<b>\n```", "<pre><code>&lt;b&gt;</code></pre>"),
        ("```\nnever closed", "<p>```<br>never closed</p>"),
        ("- a\n- b\n  - c", "<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul>"),
        ("3. a\n4. b", '<ol start="3"><li>a</li><li>b</li></ol>'),
        (
            "|a|b|\n|-|-|\n|1|2\\||",
            '<div class="scroll"><table><thead><tr><th>a</th><th>b</th></tr></thead>'
            "<tbody><tr><td>1</td><td>2|</td></tr></tbody></table></div>",
        ),
        (
            "[d](https://a.example/x)",
            f"<p>{LINK.format('https://a.example/x', 'd', 'a.example')}</p>",
        ),
        (
            "[https://bank.example](https://evil.example)",
            f"<p>{LINK.format('https://evil.example', 'https://bank.example', 'evil.example')}</p>",
        ),
        ("[d](javascript:alert(1))", "<p>[d](javascript:alert(1))</p>"),
        ("[d](//evil.example)", "<p>[d](//evil.example)</p>"),
        ("![i](https://a.example/i.png)", "<p>![i](https://a.example/i.png)</p>"),
        ("<img src=x onerror=alert(1)>", "<p>&lt;img src=x onerror=alert(1)&gt;</p>"),
    ],
)
def test_each_kind_of_mark(written: str, shown: str) -> None:
    """Marks of the small kind have their effect; all else is text. MD-1."""
    assert html(written) == shown


class Tags(HTMLParser):
    """The tags of a text with their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, tuple[str, ...]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, tuple(name for name, _ in attrs)))


KNOWN = re.compile(r"p|br|strong|em|code|pre|ul|ol|li|table|thead|tbody|tr|th|td|div|a|span")


@given(SIGNS)
def test_nothing_but_known_tags_comes_out(text: str) -> None:
    """Whatever is written: no other tag, and only the attributes that we give. MD-1."""
    tags = Tags()
    tags.feed(html(text))
    for tag, names in tags.found:
        assert KNOWN.fullmatch(tag)
        assert set(names) <= {"href", "rel", "class", "start"}


@given(SIGNS)
def test_what_is_inserted_means_nothing(text: str) -> None:
    """Escaped, a text is shown as it is: no mark, no link, the same characters. MD-3."""
    tags = Tags()
    tags.feed(html(f"see {escaped(text)}"))
    assert {tag for tag, _ in tags.found} <= {"p", "br"}
    assert plain(escaped(text)).split() == text.split()


@pytest.mark.parametrize(
    ("written", "line"),
    [
        ("\n \n# Pay **200** payouts?\nmore", "Pay 200 payouts?"),
        ("- first\n- second", "first"),
        ("see [docs](https://a.example)", "see docs (a.example)"),
        ("```\ncode\n```", "code"),
        ("x" * 200, "x" * (TITLE - 1) + "…"),
        ("", ""),
    ],
)
def test_the_title(written: str, line: str) -> None:
    """The first line that is not blank, without marks, cut at 120 characters. MD-2."""
    assert title(written) == line


@pytest.mark.parametrize(
    ("written", "rest"),
    [
        ("Pay?", ""),
        ("Pay?\n\nAll of it.", "All of it."),
        ("# Pay **now**?\nmore", "more"),
        ("see [d](https://a.example)\nmore", "see [d](https://a.example)\nmore"),
        ("- a\n- b", "- a\n- b"),
        ("x" * 200, "x" * 200),
        ("", ""),
        (" \t\n", " \t\n"),
        ("```", "```"),
        ("~~~a\n~~~", "~~~a\n~~~"),
    ],
)
def test_what_stands_below_the_title(written: str, rest: str) -> None:
    """Nothing is said twice, and nothing is lost."""
    assert below_title(written) == rest


BLOCKS = st.lists(st.sampled_from(["```", "~~~~", "|-|", "a|b", "# ", "- ", "1. ", " ", "", "x"]))


@given(SIGNS | BLOCKS.map("\n".join) | st.text())
def test_every_message_has_a_title_and_a_page(text: str) -> None:
    """Also one of blanks or fences alone, and what is below its title is the end of it. MD-4."""
    assert len(title(text)) <= TITLE
    assert text.rstrip("\r\n").endswith(below_title(text).rstrip("\r\n"))
    assert html(below_title(text)) or not below_title(text).strip()
    assert len(plain(text)) <= 3 * len(text)


PATTERNS = {n: one for n, one in vars(markdown).items() if isinstance(one, re.Pattern)}


def free_repeats(tree: object) -> Iterator[object]:
    """The repeats of a pattern that have no bound and may give back what they took."""
    for kind, inside in tree if isinstance(tree, _parser.SubPattern) else ():
        repeat = kind in (_constants.MAX_REPEAT, _constants.MIN_REPEAT)
        if repeat and inside[1] == _constants.MAXREPEAT:
            yield kind
        parts = inside if isinstance(inside, tuple | list) else (inside,)
        for part in parts:
            for one in part if isinstance(part, list) else (part,):
                yield from free_repeats(one)


@pytest.mark.parametrize("name", PATTERNS)
def test_no_pattern_reads_a_text_again_and_again(name: str) -> None:
    """Each repeat has a bound or gives nothing back: the work grows with the text alone. MD-4."""
    pattern = PATTERNS[name]
    assert not [*free_repeats(_parser.parse(pattern.pattern, pattern.flags))]


@pytest.mark.parametrize("pattern", ["a+b", "(?:x|(a*?))", "(?=a*b)", "(?:a+b){3}", "(a|b+)c"])
def test_a_repeat_that_gives_back_is_found(pattern: str) -> None:
    """Wherever it stands in a pattern."""
    assert [*free_repeats(_parser.parse(pattern))]


class Counted(list[str]):
    """Lines that count how often one of them is read."""

    reads = 0

    def __getitem__(self, at: object) -> str:  # type: ignore[override]
        self.reads += 1
        return super().__getitem__(at)  # type: ignore[index, return-value]


def test_the_ends_of_code_are_found_in_one_pass() -> None:
    """However many fences are never closed. MD-4."""
    lines = Counted("`" * (3 + n) for n in range(100))
    assert not markdown._closings(lines)
    assert lines.reads <= 3 * len(lines)


def test_few_signs_make_no_large_table() -> None:
    """A short row stays short below a wide head. MD-4."""
    assert len(html("a|" * 1_000 + "\n-|\n" + "|\n" * 1_000)) < 50_000
