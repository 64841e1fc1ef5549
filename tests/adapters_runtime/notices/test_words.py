"""The words of notices: every language has them all, and every kind has its template."""

import re
from io import BytesIO
from pathlib import Path

import pytest
from attrs import evolve
from babel.messages.extract import DEFAULT_KEYWORDS, extract_from_dir
from babel.messages.frontend import parse_mapping_cfg
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

from adapters_runtime.notices.rendering import Words, one_line
from wfcore.model.notice import NoticeKind
from wfcore.model.trigger import Refusal
from wfcore.ports.notices import Message, NoticeLine
from wfcore.rules.triggers.trigger import SAYS
from wfcore.testing.builders import NOW
from wfcore.wire.languages import DOMAIN, ENGLISH, LANGUAGES, LOCALE, translations

ABOUT = {
    "workflow": "Payouts",
    "step": "review",
    "message": "Look",
    "rows": 2,
    "sample": [],
    "approvedBy": ["ann@example.org"],
    "requiredApprovals": 2,
    "expiresAt": NOW,
    "resetsAt": NOW,
    "status": "APPROVED",
    "decidedBy": "ann@example.org",
    "comment": "fine",
    "error": "exploded",
    "executionId": "exec_1",
    "name": "orders",
    "reason": "PLAN_LIMIT",
    "limit": 50_000,
}
KEYWORDS = {**DEFAULT_KEYWORDS, "phrase": None}
ROOT = Path(__file__).parents[3]
PLACE = re.compile(r"%\(\w+\)s|\{\w+\}")


def catalogue(language: str) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Each message with its translation; several forms of both where there is a plural."""
    with (LOCALE / language / "LC_MESSAGES" / f"{DOMAIN}.po").open("rb") as file:
        return [(_forms(one.id), _forms(one.string)) for one in read_po(file) if one.id]


def _forms(text: str | list[str] | tuple[str, ...]) -> tuple[str, ...]:
    return (text,) if isinstance(text, str) else tuple(text)


FOREIGN = [language for language in LANGUAGES if language != ENGLISH]


@pytest.mark.parametrize("language", FOREIGN)
def test_every_message_is_translated(language: str) -> None:
    """Nothing is missing, and no placeholder is lost or invented; `make messages` collects them."""
    for message, translation in catalogue(language):
        assert all(translation), f"{message[0]!r} has no translation"
        wanted = {place for form in message for place in PLACE.findall(form)}
        for form in translation:
            assert set(PLACE.findall(form)) == wanted, form


def _said() -> set[tuple[str, ...]]:
    """Every message of templates, pages and scripts, where `make messages` looks for them."""
    with (ROOT / ".ci/babel.cfg").open() as file:
        methods, options = parse_mapping_cfg(file)
    homes = {Path(pattern.partition("**")[0]) for pattern, _ in methods}
    found = set[tuple[str, ...]]()
    for home in homes:
        ours = [(pattern.removeprefix(f"{home}/"), how) for pattern, how in methods
                if Path(pattern.partition("**")[0]) == home]  # fmt: skip
        said = {pattern.removeprefix(f"{home}/"): one for pattern, one in options.items()}
        for _, _, text, _, _ in extract_from_dir(ROOT / home, ours, said, KEYWORDS):
            found.add(_forms(text))
    return found


@pytest.mark.parametrize("language", FOREIGN)
def test_the_catalogue_has_the_messages_of_the_templates(language: str) -> None:
    """What is said and what is translated are the same set: run `make messages`."""
    assert _said() == {one for one, _ in catalogue(language)}


@pytest.mark.parametrize("language", FOREIGN)
def test_what_is_compiled_is_what_is_written(language: str) -> None:
    """The compiled catalogue, which the wheel has, is the text beside it: run `make messages`."""
    folder = LOCALE / language / "LC_MESSAGES"
    compiled = BytesIO()
    with (folder / f"{DOMAIN}.po").open("rb") as file:
        write_mo(compiled, read_po(file, language))
    assert (folder / f"{DOMAIN}.mo").read_bytes() == compiled.getvalue()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("kind", sorted({*NoticeKind} - {NoticeKind.STEP_MAIL}))
def test_every_kind_has_its_words(kind: NoticeKind, language: str) -> None:
    """A title in one line and a full body; the words of a step's mail are those of its author."""
    message = Message("n", "mail", "", language, (NoticeLine(kind, "/x", ABOUT),))
    said = Words("https://flows.example.org").say(message)
    assert said.title == one_line(said.title) != ""
    assert said.body
    assert "%(" not in said.title + said.body
    assert said.links[0][1] == "https://flows.example.org/x"


@pytest.mark.parametrize("kind", [one for one in NoticeKind if one.startswith("approval.")])
@pytest.mark.parametrize("status", ["APPROVED", "REVISED", "REJECTED"])
def test_what_concerns_an_approval_names_the_question(kind: NoticeKind, status: str) -> None:
    """By the first line of its message; what has no such fact names the step. MD-2."""
    about = {**ABOUT, "status": status, "title": "200 payouts wait"}
    for given, name in ((about, "200 payouts wait"), ({**ABOUT, "status": status}, "review")):
        line = NoticeLine(kind, "/approvals/appr_1", given)
        said = Words("https://flows.example.org").say(Message("n", "mail", "a@b.c", "en", (line,)))
        assert said.title.endswith(name)


@pytest.mark.parametrize("reason", Refusal)
def test_a_trigger_that_started_nothing_says_why_in_german(reason: Refusal) -> None:
    """NT-3: the reason is translated, the mistake in the inputs stands as recorded."""
    about = {**ABOUT, "reason": reason.value, "why": SAYS[reason], "detail": "inputs.n: is no int"}
    line = NoticeLine(NoticeKind.TRIGGER_REFUSED, "/", about)
    said = Words(None).say(Message("n", "mail", "a@b.c", "de", (line,)))
    assert SAYS[reason] not in said.body
    assert "inputs.n: is no int" in said.body


@pytest.mark.parametrize(
    ("failures", "why"), [(1, "Der letzte Start"), (3, "Die letzten 3 Starts")]
)
def test_a_paused_trigger_says_why_in_german(failures: int, why: str) -> None:
    """SH-10: the mail about the pause counts the failures in the reader's language."""
    line = NoticeLine(NoticeKind.TRIGGER_PAUSED, "/", {**ABOUT, "failures": failures})
    assert why in Words(None).say(Message("n", "mail", "a@b.c", "de", (line,))).body


def test_languages_differ() -> None:
    """German is not English; a language that is not here is."""
    message = "Open the approval"
    assert translations("de").gettext(message) == "Freigabe öffnen"
    assert translations("xx").gettext(message) == translations("en").gettext(message) == message


@pytest.mark.parametrize("name", ["test.jinja", "finance/test.jinja"])
def test_an_operator_has_words_of_their_own(tmp_path: Path, name: str) -> None:
    """A folder replaces a template for every channel, or for one; the others stay."""
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("{% block title %}Ours{% endblock %}{% block body %}x{% endblock %}")
    words = Words(None, tmp_path)

    def title(channel: str) -> str:
        line = NoticeLine(NoticeKind.TEST, "/")
        return words.say(Message("n", channel, "", "en", (line,))).title

    assert title("finance") == "Ours"
    assert title("mail") == ("Ours" if name == "test.jinja" else "A test of wfcore")


def test_the_subject_of_a_question_is_its_first_line() -> None:
    """The workflow and the step stand in the text; a reminder says that it is one."""
    about = {**ABOUT, "title": "Release 42 payouts, 18,240.10 EUR"}
    words = Words("https://flows.example.org")
    said = words.say(_message(NoticeLine(NoticeKind.APPROVAL_OPENED, "/a/x", about)))
    assert said.title == "Release 42 payouts, 18,240.10 EUR"
    assert said.body.startswith("Payouts waits for you: review\n")
    again = words.say(_message(NoticeLine(NoticeKind.APPROVAL_REMINDER, "/a/x", about)))
    assert again.title == "Reminder: Release 42 payouts, 18,240.10 EUR"


def test_instants_are_in_the_zone_of_the_reader() -> None:
    """UTC without one, or if this machine does not know it."""
    line = NoticeLine(NoticeKind.APPROVAL_OPENED, "/a/x", {**ABOUT, "expiresAt": 1_764_526_000_000})
    words = Words(None)

    def body(zone: str | None) -> str:
        return words.say(evolve(_message(line), zone=zone)).body

    assert "2025-11-30 18:06 UTC" in body(None)
    assert "2025-11-30 19:06 Europe/Berlin" in body("Europe/Berlin")
    assert "2025-11-30 18:06 UTC" in body("Atlantis/Capital")


def test_a_digest_names_the_first_to_expire_first() -> None:
    """What never expires comes last; a single link is a button, several are a list."""
    words = Words("https://flows.example.org")
    failed = NoticeLine(NoticeKind.EXECUTION_FAILED, "/e", {"workflow": "A", "error": "x"})
    late, soon = (
        NoticeLine(NoticeKind.APPROVAL_OPENED, "/a", {**ABOUT, "title": name, "expiresAt": at})
        for name, at in (("late", NOW + 2), ("soon", NOW + 1))
    )
    several, single = _message(failed, late, soon), _message(soon)
    assert [label for label, _ in words.say(several).links] == ["soon", "late", "Failed: A"]
    assert words.html(single, words.say(single)).count("inline-block") == 1
    assert "inline-block" not in words.html(several, words.say(several))


def _message(*lines: NoticeLine) -> Message:
    return Message("n", "mail", "ann@example.org", "en", lines)
