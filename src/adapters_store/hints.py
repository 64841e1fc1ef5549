"""Hints as text, and hints between the processes of one command, over inherited sockets."""

import asyncio
import socket
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from itertools import groupby

from attrs import frozen

from wfcore.ports.hints import Hint, HintKind

IDS = 100
"""The most ids in one text: a notification of PostgreSQL holds 8,000 bytes."""
_MOST_BYTES = 1 << 16


def texts_of(hints: Collection[Hint]) -> Iterator[str]:
    """The texts for *hints*: each text is a kind and ids."""
    in_order = sorted(hints, key=lambda hint: (hint.kind, hint.execution_id))
    for kind, alike in groupby(in_order, key=lambda hint: hint.kind):
        ids = [hint.execution_id for hint in alike]
        for first in range(0, len(ids), IDS):
            yield f"{kind} {','.join(ids[first : first + IDS])}"


def hints_in(text: str) -> Iterator[Hint]:
    """The hints in *text*; a kind that this program does not know is skipped."""
    kind, _, ids = text.partition(" ")
    if kind in tuple(HintKind):
        for id in ids.split(","):
            yield Hint(HintKind(kind), id)


@frozen
class Channel:
    """
    The sockets of one of several processes. `own`: the socket on which the process listens;
    `others`: the sockets of the other processes, by number. The sockets keep messages apart, do not
    block, and outlive the process, because its parent has them, too.
    """

    own: socket.socket
    others: Mapping[int, socket.socket]

    def send(self, message: bytes, to: Collection[int] | None = None) -> None:
        """Send *message* to the processes *to*, or to all others; a full socket is skipped."""
        for number in self.others if to is None else to:
            with suppress(OSError):
                self.others[number].send(message)


def channels(count: int) -> list[Channel]:
    """The channels of *count* processes that will be forked from this process."""
    pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(count)]
    for one in [end for pair in pairs for end in pair]:
        one.setblocking(False)
    return [
        Channel(own, {other: to for other, (_, to) in enumerate(pairs) if other != number})
        for number, (own, _) in enumerate(pairs)
    ]


@frozen
class ChannelHints:
    """Implements `wfcore.ports.hints.Hints` for the processes of one command."""

    channel: Channel

    async def tell(self, hints: Collection[Hint]) -> None:
        """Send *hints*; a hint that cannot be sent now is lost."""
        for text in texts_of(hints):
            self.channel.send(text.encode())

    async def hear(self, heard: Callable[[Hint], None]) -> None:
        """Call *heard* for each hint of another process, as long as other processes are running."""
        loop = asyncio.get_running_loop()
        while message := await loop.sock_recv(self.channel.own, _MOST_BYTES):
            for hint in hints_in(message.decode()):
                heard(hint)
