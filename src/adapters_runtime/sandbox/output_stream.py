"""One of a step's two output streams, at the supervisor's end. Standard library only."""

import fcntl
import os
from contextlib import suppress

from adapters_runtime.sandbox import frames

CHUNK = 65_536
MOST_LOGGED = 1_048_576
"""The most bytes of output lines that are logged, of both streams together. EX-28."""
_NO_MORE = b"\n[no further lines are stored]\n"


class Stream:
    """
    One output stream of a step: its last bytes, its length, and the lines not logged yet.

    *room* holds how many bytes may still be logged, of this stream and the streams that share
    *room*.
    """

    def __init__(self, stream: str, room: list[int]) -> None:
        self.stream = stream
        self.fd, self.write_end = os.pipe()
        self.seen = 0
        self._keep = 0
        self._kept = bytearray()
        self._unlogged = bytearray()
        self._room = room
        os.set_blocking(self.fd, False)

    @property
    def kept(self) -> bytes:
        return bytes(self._kept[-self._keep :])

    def keep(self, size: int) -> None:
        """
        Keep the last *size* bytes from now on, and enlarge the pipe to that size if the system
        permits it: a Node program that ends by `process.exit` drops what does not fit there.
        """
        self._keep = size
        if size > CHUNK:
            with suppress(OSError):  # the pipe keeps its size
                fcntl.fcntl(self.fd, fcntl.F_SETPIPE_SZ, size)

    def take(self, log: bool) -> bool:
        """Read one chunk, and log its lines if *log*; returns whether there was anything."""
        try:
            chunk = os.read(self.fd, CHUNK)
        except BlockingIOError:
            return False
        self.seen += len(chunk)
        self._kept += chunk
        if len(self._kept) > 2 * self._keep:
            del self._kept[: -self._keep]
        if log:
            self._log(chunk)
        return bool(chunk)

    def lines(self, last: bool) -> bytes:
        """The whole lines not logged yet, as a frame; if *last*, with the unfinished line, too."""
        end = len(self._unlogged) if last else self._unlogged.rfind(b"\n") + 1
        if not end and len(self._unlogged) > CHUNK:
            end = len(self._unlogged)  # a line without end is cut
        text = self._unlogged[:end]
        del self._unlogged[:end]
        return frames.frame(frames.LINES[self.stream], text) if text else b""

    def _log(self, chunk: bytes) -> None:
        room = self._room[0]
        if room >= 0:
            self._unlogged += chunk[:room]
            self._room[0] -= len(chunk)
        if 0 <= room < len(chunk):
            self._unlogged += _NO_MORE
