"""
The text of a notice, from one template for each kind, in the reader's language. Decision 138.

A template has blocks of plain text: `title`, `body` (a line for each fact) and `link`. Each channel
gives them its own form. A template in the operator's folder replaces ours, for every channel
(`approval.opened.jinja`) or for one channel (`finance/approval.opened.jinja`).
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from adapters_runtime.zones import zone
from wfcore.ports.notices import Message, NoticeLine
from wfcore.rules import markdown
from wfcore.rules.approval.machine import BY_RULE
from wfcore.rules.notices.facts import MAIL
from wfcore.rules.phrase import translated
from wfcore.rules.triggers.trigger import SAYS
from wfcore.rules.visible import shown
from wfcore.wire.languages import translations

if TYPE_CHECKING:
    from jinja2 import Environment, Template

TEMPLATES = Path(__file__).parent / "templates"
LONGEST_TITLE = 150
LONGEST_BODY = 4_000


@frozen
class NoticeText:
    """
    The text of a message.

    `title` is one line without control characters. `links`: pairs of label and address, no pairs if
    the server has no public address. `rows`: samples, each a list of objects.
    """

    title: str
    body: str
    links: tuple[tuple[str, str], ...] = ()
    rows: tuple[Sequence[Mapping[str, object]], ...] = field(default=(), repr=False)

    @property
    def text(self) -> str:
        """Body and links as plain text."""
        links = (f"{label}: {url}" for label, url in self.links)
        return "\n\n".join(part for part in (self.body, "\n".join(links)) if part)


class Words:
    """
    Makes the texts of messages. *base*: the public address of the server. *folder*: the operator's
    own templates.
    """

    def __init__(self, base: str | None, folder: Path | None = None) -> None:
        self._base = base
        self._folder = folder
        self._environments: dict[str, Environment] = {}

    def say(self, message: Message) -> NoticeText:
        """The text of *message* in the language of its reader."""
        if len(message.lines) == 1:
            return self._line(message, message.lines[0])
        several = [self._line(message, line) for line in sorted(message.lines, key=_expiry)]
        template = self._template(message, "digest")
        title, body = self._blocks(template, {"lines": several, "count": len(several)})
        links = tuple((line.title, url) for line in several for _, url in line.links)
        return NoticeText(title, body, links)

    def html(self, message: Message, text: NoticeText) -> str:
        """*text* as a small page, in which every text is escaped. MD-1."""
        from markupsafe import Markup

        question, text = self._question(message, text)
        template = self._template(message, "mail.html")
        markup = Markup(question)  # noqa: S704 - made of escaped texts
        return template.render(said=text, language=message.language, question=markup)

    def _question(self, message: Message, text: NoticeText) -> tuple[str, NoticeText]:
        """The question of a single approval as HTML, and *text* without the question."""
        line = message.lines[0]
        if len(message.lines) > 1 or "question" not in line.about:
            return "", text
        template = self._template(message, line.kind.value)
        _, rest = self._blocks(template, {**line.about, "message": "", "zone": message.zone})
        if rest == text.body:  # an operator's template without the question
            return "", text
        return markdown.html(str(line.about["question"])), evolve(text, body=rest)

    def _line(self, message: Message, line: NoticeLine) -> NoticeText:
        template = self._template(message, line.kind.value)
        about: Mapping[str, object] = {**line.about, "zone": message.zone}
        if message.channel != MAIL and "question" in about:
            about = {**about, "message": markdown.plain(str(about["question"]))}
        title, body = self._blocks(template, about)
        label = one_line(self._part(template, "link", about))
        links = ((label or title, self._base + line.path),) if self._base and line.path else ()
        sample: Any = about.get("sample") or ()
        return NoticeText(title, body, links, tuple(sample))

    def _blocks(self, template: "Template", about: Mapping[str, object]) -> tuple[str, str]:
        body = "\n".join(_lines(self._part(template, "body", about)))
        return one_line(self._part(template, "title", about)), body[:LONGEST_BODY]

    def _part(self, template: "Template", block: str, about: Mapping[str, object]) -> str:
        if block not in template.blocks:
            return ""
        return "".join(template.blocks[block](template.new_context(dict(about))))

    def _template(self, message: Message, name: str) -> "Template":
        """
        The first template that exists: the operator's for the channel, the operator's for all,
        ours.
        """
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
    from jinja2 import Environment, FileSystemLoader, pass_context, select_autoescape

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
    made.filters["instant"] = pass_context(lambda context, at: instant(at, context.get("zone")))
    gettext = translations(language).gettext
    made.filters["refusal"] = lambda reason: translated(SAYS[reason], gettext)
    rule = {BY_RULE.by: gettext("a rule")}
    made.filters["names"] = lambda names: ", ".join(rule.get(one, one) for one in names)
    return made


def instant(at: int, name: str | None = None) -> str:
    """An instant as text that is clear in every language, in the zone *name* or in UTC."""
    try:
        where = zone(name) if name else UTC
    except ValueError:  # this machine does not know the zone of another one
        name, where = None, UTC
    return f"{datetime.fromtimestamp(at / 1_000, where):%Y-%m-%d %H:%M} {name or 'UTC'}"


def _expiry(line: NoticeLine) -> float:
    """The instant at which a line is over; what never expires comes last."""
    at = line.about.get("expiresAt")
    return at if isinstance(at, int | float) else inf


def one_line(text: str) -> str:
    """*text* without line breaks and control characters, for a header."""
    printable = "".join(char if char.isprintable() else " " for char in text)
    return " ".join(printable.split())[:LONGEST_TITLE]


def _lines(text: str) -> list[str]:
    """The lines of *text* that are not blank, without the indentation of templates."""
    return [line.strip() for line in text.splitlines() if line.strip()]
