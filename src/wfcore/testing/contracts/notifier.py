"""
The contract of a notifier, as a test class to inherit from.

    class TestMyNotifier(NotifierContract):
        @pytest.fixture
        def post(self): ...       # a `ScriptedPost`: the receiver, with scripted reactions

        @pytest.fixture
        def notifier(self, post): ...    # a notifier that sends to `post`

The contract needs pytest-asyncio in auto mode.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

import pytest

from wfcore.model.notice import NoticeKind
from wfcore.ports.notices import Message, NotDelivered, NoticeLine, NoticeRefused, Notifier
from wfcore.testing.builders import NOW
from wfcore.testing.contracts.awaited import Awaited


class ScriptedPost(Protocol):
    """The receiver of one channel."""

    channel: str
    to: str
    secret: str
    """A text from the notifier's own credentials or address, which no error may repeat."""

    @property
    def received(self) -> Sequence[str]:
        """The accepted messages, as text in which words can be found."""

    def refuses(self) -> None:
        """Refuse the next message for good."""

    def fails(self) -> None:
        """Fail to take the next message, for the moment."""

    def hangs_up(self) -> None:
        """End the next connection without an answer."""


def a_message(post: ScriptedPost, id: str = "ntc_1", *, lines: int = 1, step: str = "") -> Message:
    """A message about *lines* opened approvals, as use cases make it."""
    opened = [
        NoticeLine(
            NoticeKind.APPROVAL_OPENED,
            f"/approvals/appr_{number}",
            {
                "workflow": "Payouts",
                "step": step or f"review{number}",
                "message": "Look",
                "rows": 3,
                "sample": [],
                "approvedBy": [],
                "requiredApprovals": 2,
                "expiresAt": NOW,
            },
        )
        for number in range(lines)
    ]
    return Message(id, post.channel, post.to, "en", tuple(opened))


class NotifierContract(Awaited):
    """The promises of `wfcore.ports.notices.Notifier` that a single receiver can observe."""

    async def test_a_message_arrives(self, notifier: Notifier, post: ScriptedPost) -> None:
        """A message arrives once, with its subject; nobody refused it."""
        assert (await notifier.send(a_message(post))).refused == ()
        (text,) = post.received
        assert "Payouts" in text
        assert "review0" in text

    async def test_a_digest_tells_each_of_its_lines(
        self, notifier: Notifier, post: ScriptedPost
    ) -> None:
        """A digest arrives as one message with all its lines."""
        await notifier.send(a_message(post, lines=7))
        (text,) = post.received
        assert all(f"review{number}" in text for number in range(7))

    async def test_who_refuses_for_good_is_told_apart(
        self, notifier: Notifier, post: ScriptedPost
    ) -> None:
        """A refusal for good is `NoticeRefused`, and its text contains no secret."""
        post.refuses()
        with pytest.raises(NoticeRefused) as refused:
            await notifier.send(a_message(post))
        assert post.secret not in str(refused.value)
        await notifier.send(a_message(post, "ntc_2"))
        assert len(post.received) == 1

    async def test_what_fails_may_be_tried_again(
        self, notifier: Notifier, post: ScriptedPost
    ) -> None:
        """
        A failure or a broken connection is no refusal; a message of the same id can be sent again.
        """
        for happens in (post.fails, post.hangs_up):
            happens()
            with pytest.raises(NotDelivered) as failed:
                await notifier.send(a_message(post))
            assert not isinstance(failed.value, NoticeRefused)
            assert post.secret not in str(failed.value)
        await notifier.send(a_message(post))
        assert len(post.received) == 1

    @pytest.mark.parametrize(
        "given_text",
        ["a\r\nBcc: eve@example.org\r\n\r\nx", "\x00\x1b[2J", "<b>&amp;</b>", "‮ü🎈" * 99],
    )
    async def test_hostile_text_is_text(
        self, notifier: Notifier, post: ScriptedPost, given_text: str
    ) -> None:
        """A message with hostile text in a name arrives, and has no other recipient."""
        await notifier.send(a_message(post, step=given_text))
        assert len(post.received) == 1

    async def test_many_at_once(self, notifier: Notifier, post: ScriptedPost) -> None:
        """Messages that are sent at the same time arrive once each."""
        many = [a_message(post, f"ntc_{n}", step=f"step{n}") for n in range(8)]
        await asyncio.gather(*map(notifier.send, many))
        found = sorted(n for n in range(8) for text in post.received if f"step{n}" in text)
        assert found == list(range(8))
