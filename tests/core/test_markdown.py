"""Markdown of a small safe kind: what it shows, and that nothing else comes out of it."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    ],
)
def test_what_stands_below_the_title(written: str, rest: str) -> None:
    """Nothing is said twice, and nothing is lost."""
    assert below_title(written) == rest
