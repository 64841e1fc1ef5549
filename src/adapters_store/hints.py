"""Hints as text, and hints between the processes of one command, over sockets they inherited."""

import asyncio
import socket
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from itertools import groupby

from attrs import frozen

from wfcore.ports.hints import Hint, HintKind

IDS = 100
"""The ids of one text: a notification of PostgreSQL holds 8,000 bytes."""
_MOST_BYTES = 1 << 16


def texts_of(hints: Collection[Hint]) -> Iterator[str]:
    """Texts that say *hints*: a kind, and ids."""
    in_order = sorted(hints, key=lambda hint: (hint.kind, hint.execution_id))
    for kind, alike in groupby(in_order, key=lambda hint: hint.kind):
        ids = [hint.execution_id for hint in alike]
        for first in range(0, len(ids), IDS):
            yield f"{kind} {','.join(ids[first : first + IDS])}"


def hints_in(text: str) -> Iterator[Hint]:
    """The hints of a text; kinds that this program does not know are skipped."""
    kind, _, ids = text.partition(" ")
    if kind in tuple(HintKind):
        for id in ids.split(","):
            yield Hint(HintKind(kind), id)


@frozen
class Channel:
    """
    The sockets of one of several processes: its own, on which it listens, and by number those of
    the others. The sockets keep messages apart, do not block, and outlive the process: its parent
    has them, too.
    """

    own: socket.socket
    others: Mapping[int, socket.socket]

    def send(self, message: bytes, to: Collection[int] | None = None) -> None:
        """Send to some, or all others; a full socket, which nobody reads, is left out."""
        for number in self.others if to is None else to:
            with suppress(OSError):
                self.others[number].send(message)


def channels(count: int) -> list[Channel]:
    """The hints of each of *count* processes, which are to be forked from this one."""
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
        """Send *hints*; those that cannot be sent now are lost."""
        for text in texts_of(hints):
            self.channel.send(text.encode())

    async def hear(self, heard: Callable[[Hint], None]) -> None:
        """Call *heard* for each hint of another process, as long as there are others."""
        loop = asyncio.get_running_loop()
        while message := await loop.sock_recv(self.channel.own, _MOST_BYTES):
            for hint in hints_in(message.decode()):
                heard(hint)
