"""
The words of a notice: one template for each kind, in the reader's language. Decision 138.

A template has blocks of plain text: `title`, `body`, whose lines are facts, and `link`; each
channel gives them its form. An operator's folder replaces a template for every channel
(`approval.opened.jinja`) or for one (`finance/approval.opened.jinja`).
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from wfcore.ports.notices import Message, NoticeLine
from wfcore.rules import markdown
from wfcore.rules.approval.machine import BY_RULE
from wfcore.rules.notices.facts import MAIL
from wfcore.rules.visible import shown
from wfcore.wire.languages import translations

if TYPE_CHECKING:
    from jinja2 import Environment, Template

TEMPLATES = Path(__file__).parent / "templates"
LONGEST_TITLE = 150
LONGEST_BODY = 4_000


@frozen
class Rendered:
    """
    A message in words. `title` is one line without control characters. `links`: label and address,
    none if the server has no public one. `rows`: samples, each a list of objects.
    """

    title: str
    body: str
    links: tuple[tuple[str, str], ...] = ()
    rows: tuple[Sequence[Mapping[str, object]], ...] = field(default=(), repr=False)

    @property
    def text(self) -> str:
        """All of it as plain text."""
        links = (f"{label}: {url}" for label, url in self.links)
        return "\n\n".join(part for part in (self.body, "\n".join(links)) if part)


class Words:
    """
    Puts messages into words. *base*: the public address of the server. *folder*: the operator's own
    templates.
    """

    def __init__(self, base: str | None, folder: Path | None = None) -> None:
        self._base = base
        self._folder = folder
        self._environments: dict[str, Environment] = {}

    def say(self, message: Message) -> Rendered:
        """The message in the language of its reader."""
        if len(message.lines) == 1:
            return self._line(message, message.lines[0])
        several = [self._line(message, line) for line in message.lines]
        template = self._template(message, "digest")
        title, body = self._blocks(template, {"lines": several, "count": len(several)})
        links = tuple((line.title, url) for line in several for _, url in line.links)
        return Rendered(title, body, links)

    def html(self, message: Message, said: Rendered) -> str:
        """The same as a small page, in which every text is escaped. MD-1."""
        from markupsafe import Markup

        asked, said = self._question(message, said)
        template = self._template(message, "mail.html")
        shown = Markup(asked)  # noqa: S704 - made of escaped texts
        return template.render(said=said, language=message.language, question=shown)

    def _question(self, message: Message, said: Rendered) -> tuple[str, Rendered]:
        """The question of one approval as HTML, and what is said besides."""
        line = message.lines[0]
        if len(message.lines) > 1 or "question" not in line.about:
            return "", said
        template = self._template(message, line.kind.value)
        _, besides = self._blocks(template, {**line.about, "message": ""})
        if besides == said.body:  # the template of an operator leaves it out
            return "", said
        return markdown.html(str(line.about["question"])), evolve(said, body=besides)

    def _line(self, message: Message, line: NoticeLine) -> Rendered:
        template, about = self._template(message, line.kind.value), line.about
        if message.channel != MAIL and "question" in about:
            about = {**about, "message": markdown.plain(str(about["question"]))}
        title, body = self._blocks(template, about)
        label = one_line(self._part(template, "link", line.about))
        links = ((label or title, self._base + line.path),) if self._base and line.path else ()
        sample: Any = line.about.get("sample") or ()
        return Rendered(title, body, links, tuple(sample))

    def _blocks(self, template: "Template", about: Mapping[str, object]) -> tuple[str, str]:
        body = "\n".join(_lines(self._part(template, "body", about)))
        return one_line(self._part(template, "title", about)), body[:LONGEST_BODY]

    def _part(self, template: "Template", block: str, about: Mapping[str, object]) -> str:
        if block not in template.blocks:
            return ""
        return "".join(template.blocks[block](template.new_context(dict(about))))

    def _template(self, message: Message, name: str) -> "Template":
        """The operator's for the channel, the operator's for all, or ours."""
        file = f"{name}.jinja"
        return self._environment(message.language).select_template(
            [f"{message.channel}/{file}", file]
        )

    def _environment(self, language: str) -> "Environment":
        if language not in self._environments:
            self._environments[language] = _environment(self._folders, language)
        return self._environments[language]

    @cached_property
    def _folders(self) -> tuple[Path, ...]:
        return (self._folder, TEMPLATES) if self._folder else (TEMPLATES,)


def _environment(folders: Sequence[Path], language: str) -> "Environment":
    from jinja2 import Environment, FileSystemLoader, select_autoescape

    made = Environment(
        loader=FileSystemLoader(folders),
        autoescape=select_autoescape(("html.jinja",)),
        finalize=shown,
        extensions=["jinja2.ext.i18n"],
        trim_blocks=True,
        lstrip_blocks=True,
    )
    installed: Any = made
    installed.install_gettext_translations(translations(language), newstyle=True)
    made.filters["instant"] = instant
    rule = {BY_RULE.by: translations(language).gettext("a rule")}
    made.filters["names"] = lambda names: ", ".join(rule.get(one, one) for one in names)
    return made


def instant(at: int) -> str:
    """An instant that everybody reads alike."""
    return datetime.fromtimestamp(at / 1_000, UTC).strftime("%Y-%m-%d %H:%M UTC")


def one_line(text: str) -> str:
    """*text* without line breaks and control characters: fit for a header."""
    printable = "".join(char if char.isprintable() else " " for char in text)
    return " ".join(printable.split())[:LONGEST_TITLE]


def _lines(text: str) -> list[str]:
    """The lines that say something, without the indentation of templates."""
    return [line.strip() for line in text.splitlines() if line.strip()]
