"""
The messages between the server and a step's supervisor: frames of kind, length, payload.

Standard library only: the spawner and the supervisors import it too.
"""

import struct
from collections.abc import Iterator

HEADER = struct.Struct(">cI")

# From the server. When the server closes its sending side, by will or by death, the step must end.
JOB = b"J"  # the job, once, by marshal, which is fast: both ends are the same Python

# From the supervisor.
LINES = {"stdout": b"o", "stderr": b"e"}  # whole lines, while the step runs
STDOUT = b"O"  # all of stdout, once
STDERR = b"E"  # the end of stderr, once
OUTPUT = b"W"  # the content of WF_OUTPUT, once, if anything was written there
STATE = b"S"  # the content of WF_STATE, once, if anything was written there
LEFT = b"L"  # empty, with the descriptor of the folder of artifacts, if there are any
END = b"R"  # how the step ended, by marshal; the last frame, sent when everything is dead

# The reasons for which a supervisor ends a step.
TIMED_OUT = "timed_out"
TOO_MUCH_OUTPUT = "too_much_output"
TOO_MUCH_MEMORY = "too_much_memory"
KILLED = "killed"


def frame(kind: bytes, payload: bytes | bytearray = b"") -> bytes:
    """The bytes of one frame."""
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
