"""One of a step's two output streams, as its supervisor reads it. Standard library only."""

import fcntl
import os
from contextlib import suppress

from adapters_runtime.sandbox import frames

CHUNK = 65_536
MOST_LOGGED = 1_048_576
"""Bytes of output lines that are shown, of both streams together. EX-28."""
_NO_MORE = b"\n[no further lines are stored]\n"


class Stream:
    """
    What a step writes to one stream: its end, its length, and the lines not shown yet. *room*: how
    many bytes may still be shown, of this stream and those that share it.
    """

    def __init__(self, stream: str, room: list[int]) -> None:
        self.stream = stream
        self.fd, self.write_end = os.pipe()
        self.seen = 0
        self._keep = 0
        self._kept = bytearray()
        self._unshown = bytearray()
        self._room = room
        os.set_blocking(self.fd, False)

    @property
    def kept(self) -> bytes:
        return bytes(self._kept[-self._keep :])

    def keep(self, size: int) -> None:
        """
        Keep the last *size* bytes from now on. The pipe holds as many, where the system permits it:
        a Node that ends by `process.exit` drops what does not fit there.
        """
        self._keep = size
        if size > CHUNK:
            with suppress(OSError):  # as much as before, then
                fcntl.fcntl(self.fd, fcntl.F_SETPIPE_SZ, size)

    def take(self, log: bool) -> bool:
        """Read what is there, up to a chunk; whether there was anything."""
        try:
            chunk = os.read(self.fd, CHUNK)
        except BlockingIOError:
            return False
        self.seen += len(chunk)
        self._kept += chunk
        if len(self._kept) > 2 * self._keep:
            del self._kept[: -self._keep]
        if log:
            self._show(chunk)
        return bool(chunk)

    def lines(self, last: bool) -> bytes:
        """The whole lines not shown yet, as a frame; *last*: also what follows them."""
        end = len(self._unshown) if last else self._unshown.rfind(b"\n") + 1
        if not end and len(self._unshown) > CHUNK:
            end = len(self._unshown)  # a line without end is cut
        text = self._unshown[:end]
        del self._unshown[:end]
        return frames.frame(frames.LINES[self.stream], text) if text else b""

    def _show(self, chunk: bytes) -> None:
        room = self._room[0]
        if room >= 0:
            self._unshown += chunk[:room]
            self._room[0] -= len(chunk)
        if 0 <= room < len(chunk):
            self._unshown += _NO_MORE
