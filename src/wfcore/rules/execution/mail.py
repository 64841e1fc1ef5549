"""
The mail of a `mail` step: its draft, then its recipients and files, then the end of the step. ML-1
to ML-5.

The turn that begins the step renders the draft, which needs no store. In the same unit of work the
draft becomes a notice that is due, or the step fails: recipients and files are read there.
"""

from collections.abc import Callable, Iterable, Sequence

from attrs import define

from wfcore.errors import TemplateFailed, WfError
from wfcore.model.execution import Artifact, Awaits, Execution, StepStatus
from wfcore.model.json import Json, JsonObject
from wfcore.model.mail import MailDraft
from wfcore.model.notice import Notice, NoticeKind, NoticeStatus
from wfcore.model.workflow import MailStep
from wfcore.rules.approval.people import People, is_template
from wfcore.rules.execution import machine as facts
from wfcore.rules.execution.machine import EXECUTION
from wfcore.rules.execution.open_approval import FillText, as_text, question_of
from wfcore.rules.execution.scope import keys_seen
from wfcore.rules.limits import MAX_MAIL_BYTES, MAX_MAIL_FILES, MAX_MAIL_RECIPIENTS, MAX_SUBJECT
from wfcore.rules.mailbox import FORMS, is_name, same_name
from wfcore.rules.markdown import escaped
from wfcore.rules.masking import mask, mask_text, secret_values
from wfcore.rules.notices.facts import MAIL, notice_id
from wfcore.time import EpochMs


@define
class NotMailed(WfError):
    """The reason why a mail does not go out, which names the field."""

    message: str

    def __str__(self) -> str:
        return self.message


def mail_draft(
    run: Execution,
    step: MailStep,
    prefix: str,
    fill: Callable[[Json], Json],
    fill_text: FillText,
) -> MailDraft:
    """
    The mail of *step* with *fill* for its templates; *fill_text* as in `open_approval`. Secrets are
    masked in every part. ML-5. Raises `TemplateFailed`.
    """
    secrets = secret_values(run)
    to = dict[str, None]()
    for at, entry in enumerate(step.to):
        given = mask(fill(entry), secrets) if is_template(entry) else entry
        to |= dict.fromkeys(_names(f"to[{at}]", given))
    if not to or len(to) > MAX_MAIL_RECIPIENTS:
        fix = f"gives {len(to)} recipients; at most {MAX_MAIL_RECIPIENTS}" if to else "gives nobody"
        raise TemplateFailed("to", fix)
    body = mask_text(as_text(fill(step.body)), secrets)
    shown = question_of(step.body, body, secrets, fill_text)
    return MailDraft(
        to=tuple(to),
        subject=one_line(mask_text(as_text(fill(step.subject)), secrets)),
        body=body,
        markdown=escaped(body) if shown is None else shown,
        files=tuple((_key(run, prefix, name), file) for name, file in step.files),
    )


def _names(where: str, value: Json) -> Iterable[str]:
    for one in value if isinstance(value, list | tuple) else (value,):
        if not isinstance(one, str) or not is_name(one):
            raise TemplateFailed(where, f"gives {one!r}, which is not {FORMS}")
        yield same_name(one)


def _key(run: Execution, prefix: str, step: str) -> str:
    return next(iter(keys_seen(run, prefix, (step,))), step)


def one_line(text: str) -> str:
    """*text* as a subject: each control character becomes a blank, and the end is cut. ML-5."""
    line = "".join(char if char.isprintable() else " " for char in text).strip()
    return line if len(line) <= MAX_SUBJECT else f"{line[: MAX_SUBJECT - 1]}…"


def addresses(draft: MailDraft, people: People) -> tuple[str, ...]:
    """
    The addresses of the recipients, each once. Raises `NotMailed` for the first who may get no
    mail. ML-2.
    """
    found = dict[str, None]()
    for name in draft.to:
        if not people.admits(name):
            raise NotMailed(f"to: {name} {not_admitted(name)}")
        account = people.accounts[same_name(name)]
        found[same_name(account.email) if account else same_name(name)] = None
    return tuple(found)


def not_admitted(name: str) -> str:
    """The reason why *name* may get no mail, and the cure."""
    allowed = ", and no address that WFCORE_MAIL_TO allows" if "@" in name else ""
    return f"is no active account here{allowed}"


def files_of(draft: MailDraft, run: Execution, artifacts: Iterable[Artifact]) -> Sequence[Artifact]:
    """
    The files that the mail carries, each once: those of the last attempt of their steps. Raises
    `NotMailed` for a file that is missing, and for too many or too large files. ML-4.
    """
    known = sorted(artifacts, key=lambda one: (one.name, one.id))
    found = dict[str, Artifact]()
    for at, (key, name) in enumerate(draft.files):
        result = run.step_results.get(key)
        attempt = result.attempts if result is not None else 0
        fitting = [
            one
            for one in known
            if one.step_name == key and one.attempt == attempt and name in (None, one.name)
        ]
        if not fitting:
            which = f"no file {name!r}" if name else "no file"
            raise NotMailed(f"attach[{at}]: step '{key}' left {which}")
        found |= {one.id: one for one in fitting}
    size = sum(one.size for one in found.values())
    if len(found) > MAX_MAIL_FILES:
        raise NotMailed(f"attach: gives {len(found)} files; at most {MAX_MAIL_FILES}")
    if size > MAX_MAIL_BYTES:
        raise NotMailed(f"attach: has {size:,} bytes; at most {MAX_MAIL_BYTES:,}")
    return tuple(found.values())


def mail_id(execution_id: str, key: str, attempt: int) -> str:
    """The id of the mail of an attempt. ML-1."""
    return notice_id(NoticeKind.STEP_MAIL, MAIL, "", execution_id, key, attempt)


def mail_notice(
    run: Execution,
    key: str,
    draft: MailDraft,
    to: Sequence[str],
    files: Sequence[Artifact],
    now: EpochMs,
) -> Notice:
    """
    The due row of the mail. Its id is made of the execution, the step and the attempt, so a redrive
    makes another mail, and a repetition of the unit the same one. ML-1.
    """
    attempt = run.step_results[key].attempts
    return Notice(
        id=mail_id(run.id, key, attempt),
        kind=NoticeKind.STEP_MAIL,
        channel=MAIL,
        to="",
        subject=run.id,
        created_at=now,
        due_at=now,
        execution_id=run.id,
        about={
            "step": key,
            "attempt": attempt,
            "to": list(to),
            "subject": draft.subject,
            "body": draft.body,
            "markdown": draft.markdown,
            "files": [one.id for one in files],
        },
    )


def is_awaited(run: Execution | None, notice: Notice) -> bool:
    """Whether the step still waits for its mail. Otherwise nobody wants the mail. ML-3."""
    if run is None or not EXECUTION.allows(run.status, facts.MailTaken):
        return False
    result = run.step_results.get(str(notice.about["step"]))
    return (
        result is not None
        and result.status is StepStatus.RUNNING
        and result.awaits is Awaits.MAIL
        and result.attempts == notice.about["attempt"]
    )


def mail_end(
    notice: Notice, step: MailStep, message_id: str, refused: Sequence[str]
) -> facts.MailTaken | facts.MailRefused | None:
    """The end of the step with a mail that was sent or given up; None for a mail that is due."""
    key, attempt, to = str(notice.about["step"]), _attempt(notice), notice.recipients
    if notice.status is NoticeStatus.FAILED:
        error = f"the mail was not taken: {notice.last_error}"
        return refusal(step, key, attempt, error)
    if notice.status is not NoticeStatus.SENT:
        return None
    output: JsonObject = {
        "messageId": message_id,
        "accepted": [one for one in to if one not in refused],
        "refused": [one for one in to if one in refused],
    }
    return facts.MailTaken(key, attempt, output)


def refusal(step: MailStep, key: str, attempt: int, error: str) -> facts.MailRefused:
    """The failure of a step whose mail does not go out. ML-2, ML-4."""
    return facts.MailRefused(key, attempt, error, steps=1 if step.continue_on_error else 0)


def _attempt(notice: Notice) -> int:
    attempt = notice.about["attempt"]
    assert isinstance(attempt, int)
    return attempt
