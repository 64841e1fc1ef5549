"""Mails of steps with real parts: a store on disk, a mail server on loopback, two loops. ML-1."""

import asyncio

from adapters_runtime.notices.mail import MailNotifier, read_sender, read_smtp_url
from adapters_runtime.notices.rendering import Words
from wfcore.model.access import OPERATOR
from wfcore.model.execution import StepStatus
from wfcore.model.notice import NoticeStatus
from wfcore.model.workflow import MailStep
from wfcore.ports.notices import Message, Receipt
from wfcore.rules.notices.delivery import DELAYS
from wfcore.usecases.executions import worker
from wfcore.usecases.executions.executions import read_execution

from .mail_server import MailServer, text_of
from .test_acceptance import World, ended, notifier, post, sending, states, until, world

__all__ = ["post", "world"]


class Dying(MailNotifier):
    """Dies as soon as the mail server has the mail."""

    async def send(self, message: Message) -> Receipt:
        await super().send(message)
        await asyncio.Event().wait()
        raise AssertionError


async def test_a_lost_answer_repeats_the_same_message(world: World, post: MailServer) -> None:
    """A mail whose answer was lost comes again with its Message-ID, and ends its step once."""
    step = MailStep("tell", (world.ann.email,), "Report", "All is **well**: {{ execution.id }}")
    run_id = await world.start(await world.workflow(step))
    for lease in await worker.claim(world.services, "w1", 1):
        await worker.begin(world.services, lease)
    server, sender = read_smtp_url(post.url), read_sender("flows@example.org")
    async with sending(world, Dying(server, sender, Words(None))):
        await until(lambda: post.mails)
    assert await states(world) == [NoticeStatus.DUE]
    world.clock.advance(DELAYS[0])
    async with (
        sending(world, notifier(world, post)),
        sending(world, notifier(world, post)),
    ):
        await ended(world)
    (message_id,) = {str(mail["Message-ID"]) for mail in post.mails}
    assert len(post.mails) == 2
    assert text_of(post.mails[0]).strip() == f"All is **well**: {run_id}"
    result = (await read_execution(world.services, OPERATOR, run_id)).step_results["tell"]
    assert result.status is StepStatus.COMPLETED
    assert result.output == {
        "messageId": message_id,
        "accepted": [world.ann.email],
        "refused": [],
    }
