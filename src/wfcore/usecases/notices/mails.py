"""
The mails of steps, between their step and the store. ML-1 to ML-5.

A mail is a due row like every notice, written in the unit in which its step begins. The step waits
as in a delay, and ends in the unit that records the answer of the mail server.
"""

from collections.abc import Sequence

from attrs import evolve

from wfcore.effects import DeadlineSet, Effect, Outcome, SendMail
from wfcore.errors import NotFound
from wfcore.model.access import Account
from wfcore.model.execution import Artifact, Execution
from wfcore.model.notice import Notice, NoticeKind
from wfcore.model.workflow import MailStep
from wfcore.ports.files import ArtifactFiles
from wfcore.ports.notices import Letter, LetterFile, Message, NotDelivered, NoticeRefused, Receipt
from wfcore.ports.store import Unit
from wfcore.rules.approval.people import People
from wfcore.rules.auth.rate_limit import windows
from wfcore.rules.execution.fold import advance
from wfcore.rules.execution.mail import (
    NotMailed,
    addresses,
    files_of,
    is_awaited,
    mail_end,
    mail_notice,
    refusal,
)
from wfcore.rules.execution.scope import name_of
from wfcore.rules.notices.facts import MAIL
from wfcore.time import EpochMs
from wfcore.usecases.people import met
from wfcore.usecases.reading import execution_of
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import definition_of, stage


async def send_mails(
    services: Services,
    unit: Unit,
    outcome: Outcome[Execution],
    now: EpochMs,
    left: Sequence[Artifact],
) -> Outcome[Execution]:
    """
    Make every mail of *outcome* due; *outcome* is already staged. A step whose mail may not go out
    fails. *left*: artifacts that the same unit stores. Returns the outcome with the resulting
    hints.
    """
    hints: list[Effect] = []
    for asked in outcome.effects:
        if isinstance(asked, SendMail):
            run = await execution_of(unit, outcome.record.id)
            key = asked.step_name
            if run is None or key not in run.step_results:
                continue  # the same turn has put its result aside
            try:
                unit.put(await _notice(services, unit, run, asked, now, left))
                hints.append(DeadlineSet())
            except NotMailed as why:
                step = await _step(unit, run, key)
                fact = refusal(step, key, run.step_results[key].attempts, str(why))
                hints += (await stage(unit, advance(run, fact, now), now)).effects
    return evolve(outcome, effects=(*outcome.effects, *hints)) if hints else outcome


async def _notice(
    services: Services,
    unit: Unit,
    run: Execution,
    asked: SendMail,
    now: EpochMs,
    left: Sequence[Artifact],
) -> Notice:
    """The due row of the mail. Raises `NotMailed`."""
    if MAIL not in services.policy.channels:
        raise NotMailed("this server sends no mail: the operator has not set WFCORE_SMTP_URL")
    draft = asked.draft
    people = await met(unit, People(outsiders=services.policy.mail_to), draft.to)
    to, files = addresses(draft, people), tuple[Artifact, ...]()
    if draft.files:
        stored = await unit.artifacts.of_execution(run.id)
        files = tuple(files_of(draft, run, {one.id: one for one in (*stored, *left)}.values()))
    await _count(services, unit, run, now)
    return mail_notice(run, asked.step_name, draft, to, files, now)


async def _count(services: Services, unit: Unit, run: Execution, now: EpochMs) -> None:
    """
    Count the mail to the requests of the day of the key or webhook that started the execution, or
    else of its account. Raises `NotMailed` if none is left. ML-6.

    The count is outside the unit. A unit that lost a race counts again, so the limit holds always.
    """
    account = await unit.get(Account, run.owner_id)
    if account is None:
        raise NotMailed("the account that started the execution is gone")
    subject = f"key:{run.key_id}" if run.key_id else f"account:{run.owner_id}"
    subject = f"webhook:{run.webhook_id}" if run.webhook_id and not run.key_id else subject
    day = tuple(one for one in windows(account.plan, now) if one.kind == "day")
    if (await services.counters.take(subject, day, now)).full:
        raise NotMailed(f"the plan's {day[0].limit} requests of the day are used up")


async def _step(unit: Unit, run: Execution, key: str) -> MailStep:
    definition = await definition_of(unit, run.workflow_id, run.revision)
    step = definition.step(name_of(key))
    assert isinstance(step, MailStep)
    return step


async def letter_of(unit: Unit, notice: Notice) -> tuple[Letter | None, tuple[Artifact, ...]]:
    """The mail in *notice*, and the files that it carries; None for another notice."""
    if notice.kind is not NoticeKind.STEP_MAIL:
        return None, ()
    about = notice.about
    ids = tuple(map(str, _listed(about["files"])))
    subject, body, markdown = (str(about[name]) for name in ("subject", "body", "markdown"))
    found = {one.id: one for one in await unit.some(Artifact, ids)} if ids else {}
    return Letter(notice.recipients, subject, body, markdown), tuple(found[id] for id in ids)


def _listed(value: object) -> Sequence[object]:
    assert isinstance(value, list | tuple)
    return value


async def with_files(services: Services, message: Message, carried: Sequence[Artifact]) -> Message:
    """*message* with the contents of its files. Raises `NoticeRefused` for a lost file. ML-4."""
    if message.letter is None or not carried:
        return message
    read = [await _content(services.files, one) for one in carried]
    return evolve(message, letter=evolve(message.letter, files=tuple(read)))


async def _content(files: ArtifactFiles, one: Artifact) -> LetterFile:
    try:
        chunks = [chunk async for chunk in files.read(one.storage_key, 0, one.size)]
    except NotFound:
        raise NoticeRefused(f"the file {one.name!r} of step '{one.step_name}' is gone") from None
    return LetterFile(one.name, one.content_type, b"".join(chunks))


async def end_step(
    unit: Unit, notice: Notice, outcome: Receipt | NotDelivered, now: EpochMs
) -> tuple[Effect, ...]:
    """End the step with its mail *notice*, if the mail is over; returns the hints. ML-1."""
    run = await execution_of(unit, notice.subject)
    if run is None or not is_awaited(run, notice):
        return ()
    sent = outcome if isinstance(outcome, Receipt) else Receipt("")
    step = await _step(unit, run, str(notice.about["step"]))
    end = mail_end(notice, step, sent.message_id or f"<{notice.id}>", sent.refused)
    if end is None:
        return ()
    return (await stage(unit, advance(run, end, now), now)).effects
