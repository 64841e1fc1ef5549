"""Steps that send mail: who may get it, what it carries, and how its step ends. ML-1 to ML-6."""

from io import BytesIO

import pytest
from attrs import evolve

from wfcore.errors import InvalidDefinition
from wfcore.model.access import OPERATOR, AccountStatus, Principal, Tier, Window
from wfcore.model.execution import Execution, ExecutionStatus, StepResult, StepStatus
from wfcore.model.json import JsonObject
from wfcore.model.notice import Notice, NoticeStatus
from wfcore.model.page import PageRequest
from wfcore.model.workflow import Branch, MailStep, ParallelStep, Step, Variable, VariableType
from wfcore.ports.notices import NotDelivered, NoticeRefused, Receipt
from wfcore.ports.runtime import LeftFile
from wfcore.rules.limits import REQUESTS
from wfcore.rules.notices.delivery import DELAYS
from wfcore.testing.fakes_running import NotedNotifier
from wfcore.time import DAY, HOUR, MINUTE, EpochMs
from wfcore.usecases.accounts import accounts
from wfcore.usecases.executions import executions, redriving
from wfcore.usecases.executions import worker as running
from wfcore.usecases.notices.mails import with_files
from wfcore.usecases.notices.sending import settle_notice, take_notices

from .conftest import World, code, review

ANN, BOB = "ann@example.org", "bob@customer.example"


@pytest.fixture
def posting(world: World) -> World:
    """The world with mail, which may also go to one domain without accounts."""
    return admitting(world, "@customer.example")


def admitting(world: World, *to: str) -> World:
    policy = evolve(world.services.policy, channels=frozenset({"mail"}), mail_to=frozenset(to))
    return evolve(world, services=evolve(world.services, policy=policy))


def mail(to: tuple[str, ...] = (BOB,), **more: object) -> MailStep:
    given: dict[str, object] = {"subject": "Report", "body": "All is **well**.", **more}
    return MailStep("tell", to, **given)  # type: ignore[arg-type]


async def begun(
    world: World, *steps: Step, plan: Tier = Tier.PRO, **declared: Variable
) -> tuple[Principal, str]:
    """An execution of ann's whose first turn is over."""
    ann = await world.account(plan=plan)
    workflow = await world.workflow(ann, *steps, variables=declared)
    run_id = await world.start(ann, workflow)
    await world.take()
    return ann, run_id


async def read(world: World, run_id: str) -> Execution:
    return await executions.read_execution(world.services, OPERATOR, run_id)


async def step(world: World, run_id: str, name: str = "tell") -> StepResult:
    return (await read(world, run_id)).step_results[name]


async def notices(world: World) -> list[Notice]:
    async with world.services.store.view() as view:
        return [*(await view.notices.list((), PageRequest(1, 200))).rows][::-1]


async def post(world: World, notifier: NotedNotifier) -> int:
    """One round of the loop that sends; the number of attempts."""
    taken = await take_notices(world.services, 50)
    for sending in taken:
        outcome: Receipt | NotDelivered
        try:
            message = await with_files(world.services, sending.message, sending.files)
            outcome = await notifier.send(message)
        except NotDelivered as failed:
            outcome = failed
        await settle_notice(world.services, sending, outcome)
    return len(taken)


async def test_a_step_ends_when_its_mail_is_taken(posting: World) -> None:
    """Nobody holds the execution meanwhile; the output says who got the mail. ML-1."""
    _, run_id = await begun(posting, mail((ANN, BOB), subject="Report\r\nBcc: eve@x.example"))
    waiting = await read(posting, run_id)
    assert (waiting.status, waiting.worker) == (ExecutionStatus.RUNNING, None)
    assert waiting.due_at == waiting.accepted_at + 3 * HOUR
    notifier = NotedNotifier()
    notifier.refuses = (BOB,)
    assert await post(posting, notifier) == 1
    (message,) = notifier.sent
    assert message.letter is not None
    assert message.letter.to == (ANN, BOB)
    assert message.letter.subject == "Report  Bcc: eve@x.example"
    await posting.take()
    ended = await read(posting, run_id)
    assert ended.status is ExecutionStatus.COMPLETED
    assert ended.output == {
        "messageId": f"<{message.id}@noted.example>",
        "accepted": [ANN],
        "refused": [BOB],
    }


async def test_a_mail_is_tried_again_with_the_same_id(posting: World) -> None:
    """After a lost attempt the same message is due again, and it ends the step once. ML-1, NT-4."""
    _, run_id = await begun(posting, mail())
    notifier = NotedNotifier()
    (lost,) = await take_notices(posting.services, 50)  # and its process is gone
    assert await post(posting, notifier) == 0
    posting.clock.advance(DELAYS[0])
    assert await post(posting, notifier) == 1
    assert notifier.sent[0].id == lost.message.id
    assert await settle_notice(posting.services, lost, NoticeRefused("late")) is None
    assert (await step(posting, run_id)).status is StepStatus.COMPLETED


async def test_a_mail_that_is_given_up_fails_its_step(posting: World) -> None:
    """Five attempts within the step's three hours, then the step fails with the reason. ML-1."""
    _, run_id = await begun(posting, mail())
    notifier = NotedNotifier()
    notifier.outcomes = [NotDelivered("the server is down")] * 5
    for delay in (*DELAYS, MINUTE):
        assert await post(posting, notifier) == 1
        posting.clock.advance(delay)
    failed = await step(posting, run_id)
    assert failed.status is StepStatus.FAILED
    assert failed.error == "the mail was not taken: the server is down"
    await posting.take()
    assert (await read(posting, run_id)).status is ExecutionStatus.FAILED


async def test_a_step_times_out_and_its_mail_is_dropped(posting: World) -> None:
    """A mail that no server took in time is not sent later. ML-1, ML-3."""
    _, run_id = await begun(posting, mail(timeout_ms=MINUTE))
    notifier = NotedNotifier()
    notifier.outcomes = [NotDelivered("later")]
    await post(posting, notifier)
    posting.clock.advance(MINUTE)
    await posting.take()
    assert (await step(posting, run_id)).error == "ran into its timeout of 60 s"
    assert await post(posting, notifier) == 0
    assert [one.status for one in await notices(posting)] == [NoticeStatus.DROPPED]


async def test_cancelling_drops_a_mail_that_was_not_handed_over(posting: World) -> None:
    """ML-3: nothing goes out for an execution that was cancelled before."""
    ann, run_id = await begun(posting, mail())
    await executions.cancel_execution(posting.services, ann, run_id)
    notifier = NotedNotifier()
    assert await post(posting, notifier) == 0
    assert notifier.sent == []
    assert [one.status for one in await notices(posting)] == [NoticeStatus.DROPPED]


async def test_a_mail_that_was_handed_over_changes_nothing_afterwards(posting: World) -> None:
    """The answer for a cancelled execution is recorded with the mail alone. ML-3."""
    ann, run_id = await begun(posting, mail())
    (sending,) = await take_notices(posting.services, 50)
    await executions.cancel_execution(posting.services, ann, run_id)
    settled = await settle_notice(posting.services, sending, Receipt("taken"))
    assert settled is not None
    assert settled.status is NoticeStatus.SENT
    assert (await step(posting, run_id)).status is StepStatus.CANCELLED


async def test_a_redrive_sends_another_mail(posting: World) -> None:
    """The mail of a failed step has a new id in the redriven execution. ML-1."""
    ann, run_id = await begun(posting, mail())
    notifier = NotedNotifier()
    notifier.outcomes = [NoticeRefused("no such user")]
    await post(posting, notifier)
    await posting.take()
    await redriving.redrive(posting.services, ann, run_id)
    await posting.take()
    found = {one.subject: one for one in await notices(posting)}
    assert len(found) == len({one.id for one in found.values()}) == 2
    assert found.pop(run_id).status is NoticeStatus.FAILED
    assert [one.status for one in found.values()] == [NoticeStatus.DUE]


async def test_only_admitted_recipients_stand_in_a_definition(posting: World) -> None:
    """ML-2: a literal that may get no mail is refused, with its place; an account's id is fine."""
    ann = await posting.account()
    with pytest.raises(InvalidDefinition) as refused:
        await posting.workflow(ann, mail((BOB, "eve@sub.customer.example", ann.account.id)))
    (problem,) = refused.value.problems
    assert problem.path == "steps[0].to[1]"
    assert "no active account here, and no address that WFCORE_MAIL_TO" in problem.message


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ("eve@else.example", "to: eve@else.example is no active account here"),
        (f"{BOB}, eve@else.example", "gives 'bob@customer.example, eve@else.example'"),
        ([BOB, 7], "gives 7, which is not an email address"),
        ([], "gives nobody"),
        ([f"u{n}@customer.example" for n in range(51)], "gives 51 recipients; at most 50"),
        ("gone@example.org", "to: gone@example.org is no active account here"),
    ],
)
async def test_recipients_from_data_are_judged_before_anything_goes_out(
    posting: World, given: object, error: str
) -> None:
    """ML-2: one that is not admitted fails the step, and nobody gets the mail."""
    gone = await posting.account("gone@example.org")
    await accounts.set_account(
        posting.services, OPERATOR, gone.account.id, status=AccountStatus.LOCKED
    )
    to = Variable("to", has_default=True, default=given)  # type: ignore[arg-type]
    _, run_id = await begun(posting, mail(("{{ variables.to }}",)), to=_typed(to))
    await posting.take()
    failed = await read(posting, run_id)
    assert failed.status is ExecutionStatus.FAILED
    assert error in str(failed.error)
    assert await notices(posting) == []


def _typed(variable: Variable) -> Variable:
    is_list = isinstance(variable.default, list)
    return evolve(variable, type=VariableType.ARRAY if is_list else VariableType.STRING)


async def test_without_a_channel_the_step_fails_by_name(world: World) -> None:
    """ML-1: a server that sends no mail says which setting is missing."""
    ann = await world.account()
    run_id = await world.start(ann, await world.workflow(ann, mail((ANN,))))
    await world.take()
    await world.take()
    assert "WFCORE_SMTP_URL" in str((await read(world, run_id)).error)


async def test_a_tolerated_failure_lets_the_execution_go_on(posting: World) -> None:
    """With `continueOnError` a mail that nobody takes fails its step alone. EX-10."""
    _, run_id = await begun(posting, mail(continue_on_error=True))
    notifier = NotedNotifier()
    notifier.outcomes = [NoticeRefused("no such user")]
    await post(posting, notifier)
    await posting.take()
    ended = await read(posting, run_id)
    assert (ended.status, ended.completed_steps) == (ExecutionStatus.COMPLETED, 1)


async def test_files_go_along(posting: World) -> None:
    """ML-4: the files of the last attempt, from the store of artifacts, with name and type."""
    ann = await posting.account()
    send = mail(attach=("report/a.csv", "report"))
    run_id = await posting.start(ann, await posting.workflow(ann, code("report"), send))
    lease, _ = await posting.take()
    files = tuple([await file(posting, run_id, name) for name in ("b.csv", "a.csv")])
    await posting.finish(lease, "report", files=files)
    notifier = NotedNotifier()
    await post(posting, notifier)
    letter = notifier.sent[0].letter
    assert letter is not None
    found = [(one.name, one.content_type, one.content) for one in letter.files]
    assert found == [("a.csv", "text/csv", b"a.csv;1"), ("b.csv", "text/csv", b"b.csv;1")]


@pytest.mark.parametrize(
    ("attach", "size", "error"),
    [
        (("report/c.csv",), 1, "attach[0]: step 'report' left no file 'c.csv'"),
        (("quiet",), 1, "attach[0]: step 'quiet' left no file"),
        (("report",), 20 * 1_048_576 + 1, "attach: has 20,971,521 bytes; at most 20,971,520"),
    ],
)
async def test_files_that_do_not_fit_fail_the_step(
    posting: World, attach: tuple[str, ...], size: int, error: str
) -> None:
    """ML-4: a missing file, and more than 20 MB, are named; nothing goes out."""
    ann = await posting.account()
    steps = code("quiet"), code("report"), mail(attach=attach)
    run_id = await posting.start(ann, await posting.workflow(ann, *steps))
    lease, _ = await posting.take()
    await posting.finish(lease, "quiet")
    left = evolve(await file(posting, run_id, "a.csv"), size=size)
    await posting.finish(lease, "report", files=(left,))
    assert error in str((await step(posting, run_id)).error)
    assert await notices(posting) == []


async def file(world: World, run_id: str, name: str) -> LeftFile:
    stored = await world.services.files.store(
        run_id, f"art_{name[0]}", BytesIO(f"{name};1".encode())
    )
    return LeftFile(
        f"art_{name[0]}", name, stored.storage_key, stored.size, "text/csv", stored.sha256, True
    )


async def test_no_secret_reaches_a_mail(posting: World) -> None:
    """ML-5, SC-1: a secret is masked in subject and body, and can be no recipient."""
    secret = Variable("key", has_default=True, default="hunter2-hunter2", secret=True)
    text = "k: {{ variables.key }}"
    await begun(posting, mail(subject=text, body=text), key=secret)
    notifier = NotedNotifier()
    await post(posting, notifier)
    assert "hunter2" not in repr(await notices(posting))
    letter = notifier.sent[0].letter
    assert letter is not None
    assert (letter.subject, letter.body) == ("k: ***", "k: ***")
    assert "hunter2" not in letter.markdown


async def test_mails_count_to_the_requests_of_the_day(posting: World) -> None:
    """ML-6: of a plan with few requests a day, a mail takes one; without any the step fails."""
    limit = REQUESTS[Tier.FREE][1]
    assert limit is not None
    sends = tuple(Branch(f"b{n}", (evolve(mail(), name=f"m{n}"),)) for n in range(2))
    ann = await posting.account(plan=Tier.FREE)
    workflow = await posting.workflow(ann, ParallelStep("both", sends))
    day = posting.services.store.now() // DAY * DAY
    whole = Window("day", EpochMs(day), EpochMs(day + DAY), None)
    for _ in range(limit - 1):
        await posting.services.counters.take(f"account:{ann.account.id}", (whole,), EpochMs(day))
    run_id = await posting.start(ann, workflow)
    await posting.take()
    results = (await read(posting, run_id)).step_results
    errors = [results[name].error for name in ("m0", "m1")]
    assert errors == [None, f"the plan's {limit} requests of the day are used up"]
    assert len(await notices(posting)) == 1


async def test_a_mail_is_no_part_of_a_digest(posting: World) -> None:
    """Ten mails to one person go out as ten messages, each with its own step. ML-1, NT-6."""
    sends = tuple(Branch(f"b{n}", (evolve(mail(), name=f"m{n}"),)) for n in range(10))
    _, run_id = await begun(posting, ParallelStep("all", sends))
    notifier = NotedNotifier()
    assert await post(posting, notifier) == 10
    await posting.take()
    assert (await read(posting, run_id)).status is ExecutionStatus.COMPLETED


async def test_a_mail_ends_while_its_execution_is_interrupted(posting: World) -> None:
    """The answer is kept, and the execution stays as it is until it is resumed. ML-1, FL-10."""
    branches = (Branch("a", (code("work"),)), Branch("b", (mail(),)))
    ann = await posting.account()
    run_id = await posting.start(ann, await posting.workflow(ann, ParallelStep("both", branches)))
    lease, _ = await posting.take()
    await running.hand_back(posting.services, lease)
    assert (await read(posting, run_id)).status is ExecutionStatus.INTERRUPTED
    await post(posting, NotedNotifier())
    after = await read(posting, run_id)
    assert after.status is ExecutionStatus.INTERRUPTED
    assert after.step_results["tell"].status is StepStatus.COMPLETED


async def test_an_approval_beside_a_mail_waits_for_its_own_decision(posting: World) -> None:
    """A mail and a question in two branches both wait; the mail's end leaves the question open."""
    branches = (Branch("a", (review(),)), Branch("b", (mail(),)))
    _, run_id = await begun(posting, ParallelStep("both", branches))
    assert (await read(posting, run_id)).status is ExecutionStatus.RUNNING
    await post(posting, NotedNotifier())
    await posting.take()
    after = await read(posting, run_id)
    assert after.status is ExecutionStatus.AWAITING_APPROVAL
    output: JsonObject = after.step_results["tell"].output  # type: ignore[assignment]
    assert output["accepted"] == [BOB]
