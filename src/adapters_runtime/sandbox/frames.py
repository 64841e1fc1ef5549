"""
What the server and a step's supervisor say to each other: frames of kind, length, payload.

Standard library only: the spawner and the supervisors import it too.
"""

import struct
from collections.abc import Iterator

HEADER = struct.Struct(">cI")

# From the server. When it closes its sending side, by will or by death, the step is to end.
JOB = b"J"  # what to start, once, by marshal: both ends are the same Python, and it is fast

# From the supervisor.
LINES = {"stdout": b"o", "stderr": b"e"}  # whole lines, while the step runs
STDOUT = b"O"  # all of stdout, once
STDERR = b"E"  # the end of stderr, once
OUTPUT = b"W"  # what was written to WF_OUTPUT, once, if anything was
LEFT = b"L"  # empty, with the descriptor of the folder of artifacts, if there are any
END = b"R"  # how it ended, by marshal; last frame, sent when everything is dead

# Why a supervisor ended a step that had not ended by itself.
TIMED_OUT = "timed_out"
TOO_MUCH_OUTPUT = "too_much_output"
TOO_MUCH_MEMORY = "too_much_memory"
KILLED = "killed"


def frame(kind: bytes, payload: bytes | bytearray = b"") -> bytes:
    """One frame as bytes."""
    return HEADER.pack(kind, len(payload)) + payload


def take_frames(buffer: bytearray) -> Iterator[tuple[bytes, bytes]]:
    """Take every complete frame from the front of *buffer*, as (kind, payload)."""
    while len(buffer) >= HEADER.size:
        kind, length = HEADER.unpack_from(buffer)
        end = HEADER.size + length
        if len(buffer) < end:
            return
        payload = bytes(buffer[HEADER.size : end])
        del buffer[:end]
        yield kind, payload
