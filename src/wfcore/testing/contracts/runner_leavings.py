"""The contract of a step runner about artifacts: the files that a step leaves."""

import hashlib

import pytest
from attrs import evolve

from wfcore.ports.files import ArtifactFiles
from wfcore.ports.runtime import LeftFile, StepRunner
from wfcore.rules.masking import secrets_of
from wfcore.testing.contracts.steps import job, silent

_IN_ARTIFACTS = "import os; os.chdir(os.environ['WF_ARTIFACTS'])\n"


async def _content(files: ArtifactFiles, file: LeftFile) -> bytes:
    return b"".join([chunk async for chunk in files.read(file.storage_key, 0, file.size)])


class LeavingContract:
    """The promises about artifacts."""

    async def test_artifacts(self, runner: StepRunner, files: ArtifactFiles) -> None:
        """Each file in WF_ARTIFACTS is stored under its own id, and named by its path."""
        source = """
open("a.csv", "w").write("x,y")
os.makedirs("deep/er")
open("deep/er/page.html", "wb").write(b"\\0" * 200_000)
open("empty", "w").close()
"""
        end = await runner.run(job(_IN_ARTIFACTS + source), silent)
        assert end.error is None
        found = {file.name: file for file in end.files}
        contents = {"a.csv": b"x,y", "deep/er/page.html": bytes(200_000), "empty": b""}
        assert {name: await _content(files, file) for name, file in found.items()} == contents
        assert all(file.size == len(contents[name]) for name, file in found.items())
        assert found["a.csv"].sha256 == hashlib.sha256(b"x,y").hexdigest()
        assert len({file.id for file in end.files}) == 3

    @pytest.mark.parametrize(
        ("given_name", "given_content_type", "given_previewable"),
        [
            ("a.csv", "text/csv", True),
            ("a.MD", "text/markdown", True),
            ("a.json", "application/json", True),
            ("a.png", "image/png", True),
            ("a.pdf", "application/pdf", True),
            ("a.txt", "text/plain", True),
            ("a.html", "text/html", False),
            ("a.js", "text/javascript", False),
            ("a.svg", "image/svg+xml", False),
            ("a.tar.gz", "application/octet-stream", False),
            ("no-suffix", "application/octet-stream", False),
        ],
    )
    async def test_content_type(
        self, runner: StepRunner, given_name: str, given_content_type: str, given_previewable: bool
    ) -> None:
        """
        The content type follows from the name. Types that are dangerous in a browser are not served
        as such.
        """
        end = await runner.run(job(_IN_ARTIFACTS + f"open({given_name!r}, 'w').close()"), silent)
        (file,) = end.files
        assert (file.content_type, file.previewable) == (given_content_type, given_previewable)

    async def test_nothing_but_own_files(self, runner: StepRunner) -> None:
        """
        Symbolic links, hard links, pipes, sockets and the contents of linked folders are not
        artifacts. Each is reported with the reason, and the step does not fail. CS-10.
        """
        source = """
import socket
os.symlink("/etc/passwd", "link")
os.symlink("/etc", "folder")
open("../outside", "w").write("x")
os.link("../outside", "second-name")
os.mkfifo("pipe")
open("mine", "w").write("x")
try:
    socket.socket(socket.AF_UNIX).bind("socket")
except OSError:  # where a step has no sockets
    os.symlink("mine", "socket")
"""
        end = await runner.run(job(_IN_ARTIFACTS + source), silent)
        assert end.error is None
        assert [file.name for file in end.files] == ["mine"]
        said = {file.name: file.reason for file in end.refused}
        assert said.pop("socket") in ("a socket", "a link")
        assert said == {
            "link": "a link",
            "folder": "a link",
            "second-name": "a file with several names",
            "pipe": "a pipe",
        }

    async def test_linked_folder_itself(self, runner: StepRunner) -> None:
        """An artifacts folder that was replaced by a link is not followed."""
        source = "p = os.environ['WF_ARTIFACTS']; os.rmdir(p); os.symlink('/etc', p)"
        end = await runner.run(job(_IN_ARTIFACTS + source), silent)
        assert end.files == ()
        assert end.error

    async def test_too_many(self, runner: StepRunner) -> None:
        """
        200 artifacts are allowed. One more fails the step: 200 are stored, and the last one is
        named.
        """
        source = _IN_ARTIFACTS + "for n in range({}): open(f'{{n:03}}', 'w').close()"
        assert len((await runner.run(job(source.format(200)), silent)).files) == 200
        end = await runner.run(job(source.format(201)), silent)
        assert "more than 200" in (end.error or "")
        assert end.permanent
        assert len(end.files) == 200
        assert [file.name for file in end.refused] == ["200"]

    async def test_very_many(self, runner: StepRunner) -> None:
        """Of very many refused artifacts some are named and the others counted. CS-10."""
        source = _IN_ARTIFACTS + "for n in range(6000): open(str(n), 'w').close()"
        end = await runner.run(job(source), silent)
        assert "more than 200" in (end.error or "")
        assert len(end.files) == 200
        assert len(end.refused) < 100
        assert "5,750 more" in end.refused[-1].name

    async def test_too_large(self, runner: StepRunner) -> None:
        """
        An artifact over 100 MB fails the step with an error that names the artifact. The other
        artifacts are stored. CS-10.
        """
        source = "open('huge.bin', 'wb').truncate(104_857_601); open('small', 'w').write('x')"
        end = await runner.run(job(_IN_ARTIFACTS + source), silent)
        assert "huge.bin" in (end.error or "")
        assert [file.name for file in end.files] == ["small"]
        assert [file.name for file in end.refused] == ["huge.bin"]

    async def test_deep_trees(self, runner: StepRunner) -> None:
        """
        Files that are nested too deeply are refused by the name of their folder. The other files
        are stored. CS-10.
        """
        source = """
open("mine", "w").write("x")
for level in range(60):
    os.mkdir("d")
    os.chdir("d")
    open("f", "w").close()
"""
        end = await runner.run(job(_IN_ARTIFACTS + source), silent)
        assert end.error is None
        assert {file.name for file in end.files} == {
            "mine",
            *(f"{'d/' * n}f" for n in range(1, 33)),
        }
        assert [file.name for file in end.refused] == ["/".join("d" * 33)]

    async def test_of_failed_steps(self, runner: StepRunner) -> None:
        """The artifacts of a failed step are stored, because they may explain the failure."""
        source = "open('why.txt', 'w').write('x'); raise SystemExit(1)"
        end = await runner.run(job(_IN_ARTIFACTS + source), silent)
        assert "status 1" in (end.error or "")
        assert [file.name for file in end.files] == ["why.txt"]

    async def test_names_without_secrets(self, runner: StepRunner) -> None:
        """
        No artifact's name contains a secret of the job, and each file still has its own name. SC-1.
        """
        source = """
for name in ("r-one-secret.txt", "r-two-secret.txt"):
    open(name, "w").close()
os.symlink("x", "tab\\tsecret")
"""
        hidden = secrets_of(["one-secret", "two-secret", "tab\tsecret"])
        asked = evolve(job(_IN_ARTIFACTS + source), hidden_in_names=hidden)
        end = await runner.run(asked, silent)
        assert [file.name for file in end.files] == ["r-***.txt", "r-*** (2).txt"]
        assert [file.name for file in end.refused] == ["***"]

    async def test_odd_names(self, runner: StepRunner) -> None:
        """
        A file with an odd name is kept: blanks and joiners stay, control characters are replaced.
        CS-13.
        """
        source = r"""
names = "a\u00a0b", "a\u202fb", "a\u3000b", "\u0645\u06cc\u200c", "\u0915\u200d", "ü", "a b"
for name in (b"n\new", b"n\rew", b"\xff", "turned\u202e".encode(), *map(str.encode, names)):
    open(name, "w").close()
"""
        end = await runner.run(job(_IN_ARTIFACTS + source), silent)
        assert (end.error, end.refused) == (None, ())
        persian, hindi = "\u0645\u06cc\u200c", "\u0915\u200d"
        kept = {"a\u00a0b", "a\u202fb", "a\u3000b", persian, hindi, "ü", "a b"}
        odd = "\N{REPLACEMENT CHARACTER}"
        replaced = {f"n{odd}ew", f"n{odd}ew (2)", f"turned{odd}", odd}
        assert {file.name for file in end.files} == kept | replaced
