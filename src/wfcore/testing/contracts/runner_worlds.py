"""The contract of a step runner about the surroundings of a step, and about its output."""

import asyncio
import hashlib
import json

import pytest
from attrs import evolve

from wfcore.model.json import Json, JsonObject
from wfcore.model.workflow import Language
from wfcore.ports.runtime import StepRunner
from wfcore.testing.contracts.steps import Lines, job, silent

_NAMES = {
    *("WF_CONTEXT", "WF_OUTPUT", "WF_ARTIFACTS", "WF_EXECUTION_ID", "WF_STEP_NAME", "WF_ATTEMPT"),
    "WF_STATE",
    *("PATH", "LANG", "HOME", "TMPDIR"),
}
_SHOW_ENVIRONMENT = "import json, os; print(json.dumps(dict(os.environ)))"


def _writing(text: str) -> str:
    return f"import os; open(os.environ['WF_OUTPUT'], 'w').write({text!r}); print('not this')"


class WorldContract:
    """The promises about environment, files, output and lines."""

    @pytest.mark.parametrize(
        ("given_printed", "given_output"),
        [
            ('{"a": [1, null]}', {"a": [1, None]}),
            (" 12 \n", 12),
            ('"text"', "text"),
            ("two words\n", "two words"),
            ("two newlines\n\n", "two newlines\n"),
            ("1 2", "1 2"),
            ("NaN", "NaN"),
            ("[1,]", "[1,]"),
            ("007", "007"),
            ("", ""),
            ("[" * 65 + "]" * 65, "[" * 65 + "]" * 65),
        ],
    )
    async def test_stdout(self, runner: StepRunner, given_printed: str, given_output: Json) -> None:
        """
        If stdout is one strict JSON value, this value is the output; otherwise the text is the
        output.
        """
        end = await runner.run(job(f"print({given_printed!r}, end='')"), silent)
        assert (end.output, end.error) == (given_output, None)

    async def test_broken_text(self, runner: StepRunner) -> None:
        """Bytes that are not UTF-8 are replaced; the step does not fail."""
        end = await runner.run(job(r"import os; os.write(1, b'a\xffb')"), silent)
        assert (end.output, end.error) == ("a\N{REPLACEMENT CHARACTER}b", None)

    async def test_output_file(self, runner: StepRunner) -> None:
        """The JSON in WF_OUTPUT is the output, whatever is on stdout."""
        end = await runner.run(job(_writing('{"rows": [1.5, "ü"]}')), silent)
        assert (end.output, end.error) == ({"rows": [1.5, "ü"]}, None)

    @pytest.mark.parametrize("given_text", ["", "{", "NaN", "1 2", "[" * 65 + "]" * 65])
    async def test_unusable_output_file(self, runner: StepRunner, given_text: str) -> None:
        """
        A WF_OUTPUT that is not strict JSON of at most 64 levels fails the step with an error that
        names WF_OUTPUT.
        """
        end = await runner.run(job(_writing(given_text)), silent)
        assert end.output is None
        assert "WF_OUTPUT" in (end.error or "")

    @pytest.mark.parametrize("given_how", ["os.symlink", "os.link"])
    async def test_linked_output_file(self, runner: StepRunner, given_how: str) -> None:
        """WF_OUTPUT is never read through a link."""
        source = f"""
import os
open("real", "w").write("1")
{given_how}(os.path.abspath("real"), os.environ["WF_OUTPUT"])
"""
        end = await runner.run(job(source), silent)
        assert end.output is None
        assert "WF_OUTPUT" in (end.error or "")

    async def test_a_folder_as_output_file(self, runner: StepRunner) -> None:
        """
        A folder at WF_OUTPUT fails the step with an error about WF_OUTPUT; the printed lines are
        kept.
        """
        source = "import os; print('seen'); os.mkdir(os.environ['WF_OUTPUT'])"
        end = await runner.run(job(source), silent)
        assert (end.output, end.error) == (
            None,
            "WF_OUTPUT is a folder; it must be a regular file",
        )
        assert end.lines == (("stdout", "seen\n"),)
        assert (await runner.run(job("print(1)"), silent)).output == 1

    async def test_state_file(self, runner: StepRunner) -> None:
        """
        There is no file at WF_STATE at first; an object that the step writes there is its state,
        and the output is what it would be without. SV-3.
        """
        source = """
import os
path = os.environ["WF_STATE"]
assert not os.path.exists(path)
open(path, "w").write('{"cursor": "ü", "gone": null}')
print("printed")
"""
        end = await runner.run(job(source), silent)
        assert (end.state, end.output) == ({"cursor": "ü", "gone": None}, "printed")
        end = await runner.run(job("print(1)"), silent)
        assert (end.state, end.output) == (None, 1)

    @pytest.mark.parametrize("given_text", ["", "[1]", "{", '{"a": NaN}', '{"a": 1e400}'])
    async def test_unusable_state_file(self, runner: StepRunner, given_text: str) -> None:
        """A WF_STATE that is not one strict JSON object fails the step by its name. SV-3."""
        source = f"import os; open(os.environ['WF_STATE'], 'w').write({given_text!r}); print(1)"
        end = await runner.run(job(source), silent)
        assert (end.state, end.output, end.permanent) == (None, None, True)
        assert "WF_STATE" in (end.error or "")

    async def test_state_of_a_failure(self, runner: StepRunner) -> None:
        """The state of an attempt that fails is dropped. SV-3."""
        source = "import os; open(os.environ['WF_STATE'], 'w').write('{}'); raise SystemExit(3)"
        end = await runner.run(job(source), silent)
        assert (end.state, end.error is None) == (None, False)

    async def test_linked_state_file(self, runner: StepRunner) -> None:
        """WF_STATE is never read through a link."""
        source = """
import os
open("real", "w").write("{}")
os.symlink(os.path.abspath("real"), os.environ["WF_STATE"])
"""
        end = await runner.run(job(source), silent)
        assert (end.state, end.error) == (None, "WF_STATE is a link; it must be a regular file")

    async def test_oversized_output_file(self, runner: StepRunner) -> None:
        """A WF_OUTPUT over the limit fails the step."""
        end = await runner.run(job(_writing('"' + "x" * 100 + '"' + " " * (4 << 20))), silent)
        assert end.output is None
        assert "WF_OUTPUT" in (end.error or "")

    async def test_environment(self, runner: StepRunner, monkeypatch: pytest.MonkeyPatch) -> None:
        """
        A step sees its variables and the documented names, and nothing else of the server's
        environment.
        """
        monkeypatch.setenv("SERVER_SECRET", "hunter2")
        values = {"WF_VAR_a": "1", "WF_VAR_b": "ü\n$x '\"", "WF_VAR_empty": ""}
        asked = job(_SHOW_ENVIRONMENT, environment=values)
        seen = (await runner.run(asked, silent)).output
        assert isinstance(seen, dict)
        assert set(seen) - {"TZ", "LC_CTYPE"} == _NAMES | set(values)
        assert {name: seen[name] for name in values} == values
        assert seen["WF_EXECUTION_ID"] == asked.execution_id
        assert (seen["WF_STEP_NAME"], seen["WF_ATTEMPT"]) == ("work", "2")

    async def test_context(self, runner: StepRunner) -> None:
        """The file named by WF_CONTEXT contains the context, and the files of earlier steps."""
        context: JsonObject = {
            "variables": {"ü": [1, None]},
            "steps": {},
            "execution": {"id": "exec_1"},
        }
        source = "import os; print(open(os.environ['WF_CONTEXT']).read())"
        end = await runner.run(job(source, context=context), silent)
        assert end.output == {**context, "files": []}

    async def test_context_with_large_outputs(self, runner: StepRunner) -> None:
        """Outputs that a job has as text stand in the context file as if they had been decoded."""
        context: JsonObject = {
            "variables": {"word": "w"},
            "steps": {
                name: {"status": "COMPLETED", "output": None}
                for name in ("before", "rows", "text", "after")
            },
            "execution": {"id": "exec_1"},
        }
        outputs = {
            "rows": json.dumps([{"id": number} for number in range(40_000)]).encode(),
            "text": json.dumps("\N{EURO SIGN}" * 100_000, ensure_ascii=False).encode(),
        }
        source = """
import hashlib, json, os
names = json.load(open(os.environ["WF_CONTEXT"]))
text = json.dumps(names, sort_keys=True).encode()
print(json.dumps({"sha256": hashlib.sha256(text).hexdigest(), "steps": [*names["steps"]]}))
"""
        asked = evolve(job(source, context=context), outputs=outputs)
        expected = json.dumps({**asked.context, "files": []}, sort_keys=True).encode()
        end = await runner.run(asked, silent)
        assert end.output == {
            "sha256": hashlib.sha256(expected).hexdigest(),
            "steps": ["before", "rows", "text", "after"],
        }

    async def test_folder(self, runner: StepRunner) -> None:
        """
        A step starts in an empty folder with its own empty HOME and TMPDIR, and without stdin.
        """
        source = """
import json, os, sys, tempfile
places = [os.getcwd(), os.environ["HOME"], os.environ["TMPDIR"], os.environ["WF_ARTIFACTS"]]
assert tempfile.gettempdir() == os.environ["TMPDIR"]
assert len(set(places)) == 4
print(json.dumps([sum(map(os.listdir, places), []), sys.stdin.read()]))
for place in places:
    open(os.path.join(place, "left"), "w").close()
"""
        asked = job(source)
        for _ in range(2):
            assert (await runner.run(asked, silent)).output == [[], ""]

    async def test_source_stays_source(self, runner: StepRunner) -> None:
        """The source is passed unchanged and only to its own interpreter."""
        text = "{{ steps.a }} $HOME %s \\n ü"
        end = await runner.run(job(f"import json; print(json.dumps({text!r}))"), silent)
        assert end.output == text

    async def test_command(self, runner: StepRunner) -> None:
        """A command gets its arguments unchanged; no shell is involved."""
        argv = ("printf", "%s|", "$HOME", "a b", "*", "; exit 1")
        end = await runner.run(job(language=Language.COMMAND, argv=argv), silent)
        assert (end.output, end.error) == ("$HOME|a b|*|; exit 1|", None)

    async def test_lines(self, runner: StepRunner) -> None:
        """With `log`, whole lines arrive while the step runs, complete and in order."""
        said = Lines()
        source = """
import sys
for number in range(2000):
    print("line", number, file=sys.stderr if number % 2 else sys.stdout)
print("no newline", end="")
"""
        end = await runner.run(job(source, log=True), said)
        out = "".join(f"line {number}\n" for number in range(0, 2000, 2)) + "no newline"
        assert said.of("stdout") == out == end.output
        assert said.of("stderr") == "".join(f"line {number}\n" for number in range(1, 2000, 2))
        unfinished = [lines for _, lines in said.calls if not lines.endswith("\n")]
        assert len(unfinished) == 1

    async def test_lines_come_early(self, runner: StepRunner) -> None:
        """A line arrives while the step runs, not only at its end."""
        heard: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def hear(stream: str, lines: str) -> None:
            heard.set_result(None)

        asked = job("print('on'); import time; time.sleep(600)", log=True, timeout_ms=600_000)
        running = asyncio.ensure_future(runner.run(asked, hear))
        async with asyncio.timeout(60):
            await heard
        assert not running.done()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
