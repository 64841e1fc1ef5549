"""
What a process asks of the operating system, in the order in which it does: `strace` from the start.

Attaching would not do: the server makes itself undumpable. A call that another thread's call
interrupts on paper has two lines; its place is where it began, and `end` where it had an answer.
"""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shutil import which

import pytest
from attrs import frozen

from tests.wfserver.conftest import environment

CALLS = (
    "read,readv,recvfrom,recvmsg,write,writev,pwrite64,pwritev,sendto,sendmsg,fsync,fdatasync,"
    "rename,linkat,link,mkdir,openat,ftruncate,unlink"
)
WRITES = ("write", "writev", "pwrite64", "pwritev", "sendto", "sendmsg")
READS = ("read", "readv", "recvfrom", "recvmsg")
FLUSHES = ("fsync", "fdatasync")
PLANTED = Path(__file__).with_name("planted.py")

Planted = tuple[str, str, str]
"""A module, a text in it, and what to put there."""

_LINE = re.compile(r"(\d+) +(?:<\.\.\. (\w+) resumed>)?(.*)")
_CALL = re.compile(r"(\w+)\((.*)")
_FILE = re.compile(r"\d+<(.*?)>[,)]")
_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')


@frozen
class Call:
    """A system call: its place among all of them, and that of its return."""

    name: str
    text: str
    begin: int
    end: int

    @property
    def file(self) -> str:
        """The path, or the connection, of the descriptor that it is about."""
        found = _FILE.match(self.text)
        return found[1] if found else ""

    @property
    def texts(self) -> Sequence[bytes]:
        """The strings among its arguments."""
        return [ast.literal_eval(f'b"{one}"') for one in _TEXT.findall(self.text)]

    @property
    def creates(self) -> bool:
        """Whether it makes what its first string names."""
        return self.name == "mkdir" or (self.name == "openat" and "O_CREAT" in self.text)

    @property
    def offset(self) -> int:
        """Where `pwrite64` writes."""
        return int(self.text.rpartition(")")[0].rpartition(", ")[2])


def command(
    record: Path, program: str, *arguments: str, planted: Sequence[Planted] = ()
) -> list[str]:
    """What to run so that *program* (`wfcore` or a file) leaves its calls in *record*."""
    if which("strace") is None:
        missing = "strace is missing: apt-get install strace"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(missing)
    texts = [text for one in planted for text in one]
    strace = ["strace", "-f", "-yy", "-s", "8192", "-e", f"trace={CALLS}", "-e", "signal=none"]
    python = [sys.executable, str(PLANTED), *texts, "--", program, *arguments]
    return [*strace, "-o", str(record), *python]


def run(record: Path, program: str, *arguments: str, planted: Sequence[Planted] = ()) -> list[Call]:
    """Run *program* to its end; its calls."""
    ended = subprocess.run(
        command(record, program, *arguments, planted=planted),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env=environment(),
        timeout=120,
    )
    assert ended.returncode == 0, ended.stderr
    return list(calls(record))


def calls(record: Path) -> Iterator[Call]:
    """The calls of a record, in the order in which they ended."""
    open_calls: dict[str, tuple[str, int]] = {}
    with record.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines):
            found = _LINE.match(line)
            if found is None:
                continue
            pid, resumed, rest = found[1], found[2], found[3]
            begin = number
            if resumed:
                text, begin = open_calls.pop(pid, ("", number))
                rest = text + rest
            if rest.endswith("<unfinished ...>"):
                open_calls[pid] = rest.removesuffix(" <unfinished ...>"), begin
            elif (call := _CALL.match(rest)) and " = -1 " not in rest[-120:]:
                yield Call(call[1], call[2], begin, number)


NAMED = "its name in its folder"


def unflushed(record: Sequence[Call], until: int, wanted: re.Pattern[str]) -> Mapping[str, str]:
    """
    What of the files whose paths *wanted* knows would not survive a power cut at *until*.

    A file needs a flush after its last write, its name one of the folder that it is in.
    """
    lost: set[tuple[str, str]] = set()
    for call in record:
        if call.end >= until:
            break
        if call.name in FLUSHES:
            flushed = call.file
            lost = {one for one in lost if not _is_flushed(one, flushed)}
        elif call.name in WRITES:
            lost.add((call.file, "its content"))
        elif call.creates:
            lost.add((call.texts[0].decode(), NAMED))
        elif call.name in ("rename", "link", "linkat"):
            old, new = (text.decode() for text in call.texts)
            moved = {one for one in lost if f"{one[0]}/".startswith(f"{old}/")}
            if call.name == "rename":
                lost -= moved
            lost |= {(new + path.removeprefix(old), what) for path, what in moved}
            lost.add((new, NAMED))
    return {path: what for path, what in sorted(lost) if wanted.search(path)}


def _is_flushed(lost: tuple[str, str], flushed: str) -> bool:
    path, what = lost
    return flushed == (path.rpartition("/")[0] if what == NAMED else path)
