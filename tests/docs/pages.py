"""
Doing what a page of the documentation says, block by block, in an empty folder.

A block that begins with `# name.ext` is a file, and so is a program of `examples` that a page
includes under its name as the caption. A `bash` block is run; one with the comment
`<!-- in another terminal -->` above it goes on beside the rest until the page ends, one with
`<!-- it fails -->` must fail, and one with `<!-- after Ctrl-C in every other terminal -->` (or: in
the first) comes after what goes on there has ended. A `text`
block below a command is what that command says: each of its lines is found in the output, `…`
stands for anything. `<!-- not run: why -->` above a block leaves it out.
"""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from attrs import frozen

from tests.system.scenarios.process import free_port

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
EXAMPLES = ROOT / "examples"
BESIDE, FAILS, NOT_RUN = "in another terminal", "it fails", "not run:"
STOPPED: Mapping[str, int | None] = {
    "after Ctrl-C in the first other terminal": 1,
    "after Ctrl-C in every other terminal": None,
}
"""How many of those that go on are ended, from the first one on."""
PATIENCE_S = 240
READY = re.compile("Ctrl-C|CTRL\\+C|wfcore serves|serving initial configuration")
_DONE = "-- this block is done --"

_BLOCK = re.compile(
    r"(?:^<!-- (?P<note>[^>]*?) -->\n)?^```(?P<language>[\w{}-]*)[^\n]*\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_WHOLE = re.compile(r"^```\{literalinclude\} (\S+)\n:caption: (\S+)\n```$", re.MULTILINE)
_FILE = re.compile(r"\A(?:#|//|--) ([\w./-]+\.\w+)\n")


@frozen
class Block:
    """A fenced block: its language, its text, and the note above it."""

    language: str
    text: str
    note: str
    line: int

    @property
    def file(self) -> str | None:
        """The name of the file that it is."""
        found = _FILE.match(self.text)
        return found.group(1) if found else None


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page, directives left out."""
    text = page.read_text()
    for found in _BLOCK.finditer(text):
        if not found["language"].startswith("{"):
            line = text.count("\n", 0, found.start()) + 1
            yield Block(found["language"], found["text"], found["note"] or "", line)


class Reader:
    """
    Somebody who does what a page says, in *folder*. *examples*: they have the folder of that name
    from the sources; without, the package and the page are all they have. *binaries*: the folder
    of `python` and `wfcore`. *here*: what they write instead of names in the page.
    """

    def __init__(
        self,
        folder: Path,
        *,
        examples: bool = True,
        binaries: Path = Path(sys.executable).parent,
        here: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.examples = examples
        self.binaries = binaries
        if examples:
            (folder / "examples").symlink_to(EXAMPLES)
        self.port = free_port()
        self.here = {"8000": str(self.port), **(here or {})}
        self.said = ""
        self._beside: list[subprocess.Popen[str]] = []
        self._shell: subprocess.Popen[str] | None = None

    def follow(self, page: Path) -> None:
        """Do every block. Raises `AssertionError` naming page and line where one does not hold."""
        for path, name in _WHOLE.findall(page.read_text()):
            (self.folder / name).write_text((page.parent / path).read_text())
        for block in blocks(page):
            where = f"{page.relative_to(ROOT)}:{block.line}"
            text = self._here(block.text)
            if block.note.startswith(NOT_RUN):
                continue
            if block.file is not None:
                path = self.folder / block.file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            elif block.note == BESIDE:
                self.start(text, where)
            elif block.note in STOPPED:
                self._interrupt(STOPPED[block.note])
                self._type(text, where)
            elif block.language == "bash":
                self._type(f"! {{\n{text}}}" if block.note == FAILS else text, where)
            elif block.language == "python":
                self._type(f"python <<'PYTHON'\n{text}PYTHON\n", where)
            elif block.language == "text":
                self._compare(text, where)

    def end(self) -> None:
        """End the shell, and what went on beside it."""
        if self._shell is not None:
            self._close(self._shell)
        self._interrupt(None)

    def _interrupt(self, most: int | None) -> None:
        """Ctrl-C in as many of the other terminals, the oldest first; in all of them if None."""
        ended, self._beside = self._beside[:most], self._beside[len(self._beside[:most]) :]
        for process in ended:
            process.send_signal(signal.SIGINT)
            self._close(process)

    def _here(self, text: str) -> str:
        names = sorted(self.here, key=len, reverse=True)
        return re.sub("|".join(map(re.escape, names)), lambda name: self.here[name[0]], text)

    def _close(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(30)
        finally:
            process.kill()
            process.stdout.close()

    def _type(self, text: str, where: str) -> None:
        """Type *text* into the one shell of this reader, which ends at the first failure."""
        shell = self._shell = self._shell or self._opened(["bash", "-euo", "pipefail"])
        assert shell.stdin is not None
        assert shell.stdout is not None
        shell.stdin.write(f"exec 2>&1\n{text}\necho '{_DONE}'\n")
        shell.stdin.flush()
        self.said = ""
        with _patience(shell):
            for line in shell.stdout:
                self.said += line.removesuffix(f"{_DONE}\n")
                if line.endswith(f"{_DONE}\n"):
                    return
        raise AssertionError(f"{where}\n{self.said}")

    def _opened(self, argv: list[str]) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            argv,
            cwd=self.folder,
            env=self._environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, text: str, where: str) -> None:
        """Run the command *text* until this reader ends; returns when it says that it is ready."""
        process = self._opened(["bash", "-c", f"exec 2>&1; exec {text}"])
        self._beside.append(process)
        assert process.stdout is not None
        self.said = ""
        with _patience(process):
            for line in process.stdout:
                self.said += line
                if READY.search(line):
                    return
        raise AssertionError(f"{where}: it ended: {self.said}")

    def _compare(self, text: str, where: str) -> None:
        for line in filter(None, map(str.strip, text.splitlines())):
            pattern = ".*".join(re.escape(part.strip()) for part in line.split("…"))
            assert re.search(pattern, self.said), f"{where}: {line!r} is not in\n{self.said}"

    def _environment(self) -> dict[str, str]:
        own = {name: text for name, text in os.environ.items() if not name.startswith("WFCORE_")}
        path = f"{self.binaries}{os.pathsep}{os.environ['PATH']}"
        path_of_modules = {"PYTHONPATH": str(EXAMPLES)} if self.examples else {}
        return {**own, "PATH": path, **path_of_modules, "PYTHONDONTWRITEBYTECODE": "1"}


@contextmanager
def _patience(process: "subprocess.Popen[str]") -> Iterator[None]:
    """Whatever says nothing more for too long is ended, so that a test fails and never hangs."""
    timer = threading.Timer(PATIENCE_S, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
