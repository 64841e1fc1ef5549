"""What a step's supervisor and the server tell each other: whole, in order, and to the end."""

import asyncio
import marshal
import os
import socket
from pathlib import Path

import pytest

from adapters_runtime.code.typescript import StrippedSource, without_types
from adapters_runtime.sandbox import frames, output_stream
from adapters_runtime.sandbox.client import Ended, _Watch
from adapters_runtime.sandbox.output_stream import Stream
from adapters_runtime.sandbox.supervisor import _read_context

LONG_S = 60


def test_frames_are_taken_as_soon_as_they_are_whole() -> None:
    """However they arrive: an empty one, too, and nothing of the next one is lost."""
    sent = [(frames.LEFT, b""), (frames.STDOUT, b"a" * 300), (frames.END, b"b")]
    text = b"".join(frames.frame(kind, payload) for kind, payload in sent)
    buffer, taken, ends = bytearray(), [], []
    for at, byte in enumerate(text, 1):
        buffer.append(byte)
        new = [*frames.take_frames(buffer)]
        taken += new
        ends += [at] * len(new)
    assert (taken, buffer) == (sent, b"")
    assert ends == [5, 5 + 305, len(text)]
    assert [*frames.take_frames(bytearray(text + b"R"))] == sent


def stream(*chunks: bytes, keep: int = 100, room: int = 100, log: bool = True) -> Stream:
    """One that has read *chunks*, each by itself."""
    made = Stream("stderr", [room])
    made.keep(keep)
    for chunk in chunks:
        os.write(made.write_end, chunk)
        assert made.take(log)
    return made


def close(*streams: Stream) -> None:
    for one in streams:
        os.close(one.fd)
        os.close(one.write_end)


def test_of_a_stream_the_end_is_kept_and_all_is_counted() -> None:
    """However long it is, no more than about twice the limit is held."""
    one = stream(b"12345678", b"9", keep=4)
    assert (one.kept, one.seen) == (b"6789", 9)
    assert len(one._kept) <= 8
    assert not one.take(log=True)
    close(one)


def shown(one: Stream, last: bool = False) -> bytes | None:
    """The text of the frame, if there is one."""
    found = [*frames.take_frames(bytearray(one.lines(last)))]
    assert all(kind == frames.LINES["stderr"] for kind, _ in found)
    return found[0][1] if found else None


def test_lines_are_shown_whole_and_once() -> None:
    """What follows the last one is shown at the end; one that has no end is cut."""
    one = stream(b"a\nb\nc")
    assert [shown(one), shown(one), shown(one, last=True)] == [b"a\nb\n", None, b"c"]
    endless = stream(*[b"x" * 50_000] * 2, room=1 << 20)
    assert shown(endless) == b"x" * 100_000
    silent = stream(b"a\n", log=False)
    assert shown(silent, last=True) is None
    close(one, endless, silent)


@pytest.mark.parametrize(
    ("room", "said"),
    [(5, b"a\nb\nc"), (4, b"a\nb\n"), (3, b"a\nb"), (2, b"a\n"), (0, b"")],
)
def test_beyond_their_room_no_lines_are_shown(room: int, said: bytes) -> None:
    """EX-28: that there were more is said once, in a line of its own."""
    one = stream(b"a\nb\n", b"c", b"d", room=room)
    assert shown(one, last=True) == said + output_stream._NO_MORE
    close(one)


async def ended(*told: tuple[bytes, bytes], reads_job: bool = True) -> Ended:
    """How a step ended whose supervisor tells this, and is gone."""
    ours, theirs = socket.socketpair()
    watch = _Watch(ours)
    try:
        ours.send(b"the job")
        if reads_job:
            theirs.recv(100)
        theirs.sendall(b"".join(frames.frame(kind, payload) for kind, payload in told))
        theirs.close()
        async with asyncio.timeout(LONG_S):
            await watch.gone
            for _ in range(9):  # it may be read on, until the channel is at its end
                await asyncio.sleep(0)
        return watch.take_end()
    finally:
        watch.close()


async def test_what_was_told_of_an_end_is_the_end() -> None:
    """Also where the supervisor never had the whole job. What it did not tell is empty."""
    told = (frames.END, marshal.dumps({"exit": 3}))
    output = (frames.OUTPUT, b"1")
    assert await ended(told) == Ended(exit=3)
    assert await ended(told, reads_job=False) == Ended(exit=3)
    assert await ended((frames.STDOUT, b"a"), (frames.STDERR, b"b"), output, told) == Ended(
        exit=3, stdout=b"a", stderr=b"b", output=b"1"
    )


async def test_a_supervisor_that_was_killed_leaves_nothing_known() -> None:
    """Unless it never had the job: then nothing of the step has run."""
    assert await ended() == Ended(lost=True)
    assert await ended(reads_job=False) == Ended(
        failure="its supervisor was gone before it had the job", unready=True
    )


def test_a_context_is_read_to_its_last_byte() -> None:
    """
    Its beginning may have arrived with the job; where the server is gone before its end, no step
    takes the part for the whole.
    """
    ours, theirs = socket.socketpair()
    ours.sendall(b"de")
    ours.close()
    assert b"".join(_read_context(theirs, b"abc", 5)) == b"abcde"
    assert [*_read_context(theirs, b"abc", 3)] == [b"abc"]
    with pytest.raises(ConnectionError):
        list(_read_context(theirs, b"abc", 4))
    theirs.close()


async def test_artifacts_that_did_not_arrive_are_named() -> None:
    """The folder of artifacts comes as a descriptor, for which there may have been no room."""
    end = await ended((frames.LEFT, b""), (frames.END, marshal.dumps({"exit": 0})))
    trouble = "its artifacts could not be taken: no file descriptors were left"
    assert end == Ended(exit=0, artifacts_trouble=trouble)


@pytest.mark.parametrize("status", [0, 1])
def test_only_what_a_node_that_worked_said_is_taken(tmp_path: Path, status: int) -> None:
    """One that fails says nothing, whatever it wrote."""
    node = tmp_path / "node"
    node.write_text(f"""#!/bin/sh
cat >/dev/null
echo '[{{"text": "1"}}]'
exit {status}
""")
    node.chmod(0o755)
    assert without_types(["1"], str(node)) == [StrippedSource() if status else StrippedSource("1")]
