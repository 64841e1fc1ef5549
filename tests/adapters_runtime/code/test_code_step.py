"""The step runner of this machine keeps the contract, in all seven languages."""

import asyncio
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from adapters_runtime.code import artifacts
from adapters_runtime.code.runner import CodeStepRunner, StepLimits
from adapters_runtime.sandbox.isolation.config import LANDLOCK, NAMESPACE
from adapters_runtime.sandbox.isolation_level import Isolation
from wfcore.errors import StoreUnavailable
from wfcore.model.workflow import Language
from wfcore.ports.runtime import StepRunner
from wfcore.testing.contracts.runner import RunnerContract
from wfcore.testing.contracts.steps import alive, job, silent, until

HELLO = {
    Language.PYTHON: "import os; print('[\"' + os.environ['WF_VAR_who'] + '\"]')",
    Language.JAVASCRIPT: "console.log(JSON.stringify([process.env.WF_VAR_who]))",
    Language.TYPESCRIPT: "const a: (string | undefined)[] = [process.env.WF_VAR_who];\n"
    "console.log(JSON.stringify(a))",
    Language.BASH: 'printf \'["%s"]\' "$WF_VAR_who"',
    Language.RUBY: "require 'json'; puts [ENV['WF_VAR_who']].to_json",
    Language.LUA: "print('[\"' .. os.getenv('WF_VAR_who') .. '\"]')",
}
STATEFUL = {
    Language.PYTHON: """
import json, os
state = json.load(open(os.environ["WF_CONTEXT"]))["state"]
json.dump({"count": state["count"] + 1}, open(os.environ["WF_STATE"], "w"))
""",
    Language.JAVASCRIPT: """
const fs = require('node:fs');
const { state } = JSON.parse(fs.readFileSync(process.env.WF_CONTEXT));
fs.writeFileSync(process.env.WF_STATE, JSON.stringify({ count: state.count + 1 }));
""",
    Language.TYPESCRIPT: """
import fs from 'node:fs';
const { state } = JSON.parse(fs.readFileSync(process.env.WF_CONTEXT as string, 'utf8'));
const count: number = state.count + 1;
fs.writeFileSync(process.env.WF_STATE as string, JSON.stringify({ count }));
""",
    Language.BASH: """
count=$(grep -o '"count":[0-9]*' "$WF_CONTEXT")
echo "{\\"count\\": $((${count#*:} + 1))}" >"$WF_STATE"
""",
    Language.RUBY: """
require 'json'
state = JSON.parse(File.read(ENV['WF_CONTEXT']))['state']
File.write(ENV['WF_STATE'], { count: state['count'] + 1 }.to_json)
""",
    Language.LUA: """
local context = io.open(os.getenv('WF_CONTEXT')):read('a')
local count = tonumber(context:match('"count":(%d+)'))
io.open(os.getenv('WF_STATE'), 'w'):write(('{"count": %d}'):format(count + 1)):close()
""",
    Language.COMMAND: "",
}
FAIL = {
    Language.PYTHON: "raise SystemExit(7)",
    Language.JAVASCRIPT: "process.exit(7)",
    Language.TYPESCRIPT: "process.exit(7 as number)",
    Language.BASH: "exit 7",
    Language.RUBY: "exit 7",
    Language.LUA: "os.exit(7)",
}
REQUIRE = "const fs = require('node:fs'); console.log(typeof fs.readFileSync)"
IMPORT = "import fs from 'node:fs'; console.log(await Promise.resolve(typeof fs.readFileSync))"


class TestCodeStepRunner(RunnerContract):
    """This runner keeps the contract, contained and at a lower level. CS-2, CS-4 to CS-7."""

    @pytest.fixture(params=[NAMESPACE, LANDLOCK])
    async def runner(
        self, request: pytest.FixtureRequest, tmp_path: Path, files: Any
    ) -> AsyncIterator[StepRunner]:
        number = count()
        runner = CodeStepRunner(
            tmp_path / "steps",
            files,
            lambda: f"art_{next(number)}",
            isolation=Isolation(forced=request.param),
        )
        try:
            if (await runner.level()).name != request.param:
                pytest.skip(f"no level {request.param} here: {(await runner.level()).missed}")
            yield runner
        finally:
            await runner.close()

    @pytest.fixture
    async def runner_without_ruby(self, tmp_path: Path, files: Any) -> AsyncIterator[StepRunner]:
        runner = CodeStepRunner(
            tmp_path / "poor", files, lambda: "art", environment={"PATH": "/nonexistent"}
        )
        yield runner
        await runner.close()


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("language", HELLO)
async def test_hello(runner: CodeStepRunner, able: Any, language: Language, log: bool) -> None:
    """Every language reads its variables; what it prints is the output, and told once."""
    able(language)
    said: list[tuple[str, str]] = []

    async def say(stream: str, lines: str) -> None:
        said.append((stream, lines))

    asked = job(HELLO[language], language, environment={"WF_VAR_who": "you"}, log=log)
    end = await runner.run(asked, say)
    assert (end.output, end.error) == (["you"], None)
    assert {stream for stream, _ in said} == ({"stdout"} if log else set())
    assert {stream for stream, _ in end.lines} == (set() if log else {"stdout"})


@pytest.mark.parametrize("language", STATEFUL)
async def test_state(runner: CodeStepRunner, able: Any, language: Language) -> None:
    """Every language reads the state in its context, and writes an object to WF_STATE. SV-3."""
    able(language)
    argv = ("sh", "-c", """printf '{"count": %d}' $(($1 + 1)) >"$WF_STATE" """, "sh", "41")
    asked = job(
        STATEFUL[language],
        language,
        context={"state": {"count": 41}},
        argv=argv if language is Language.COMMAND else (),
    )
    end = await runner.run(asked, silent)
    assert (end.error, end.state) == (None, {"count": 42})


@pytest.mark.parametrize("language", [Language.JAVASCRIPT, Language.TYPESCRIPT])
async def test_what_is_printed_before_an_exit_is_whole(
    runner: CodeStepRunner, able: Any, language: Language
) -> None:
    """Node drops at `process.exit` what its pipe does not hold: it holds as much as counts."""
    able(language)
    source = "console.log('x'.repeat(1_000_000)); process.exit()"
    for _ in range(2):  # the second one by an interpreter that waited for it
        end = await runner.run(job(source, language), silent)
        assert (end.error, len(str(end.output))) == (None, 1_000_000)


@pytest.mark.parametrize(
    ("made", "says"),
    [
        ('mkdir -p "$WF_OUTPUT/x"', "WF_OUTPUT is a folder; it must be a regular file"),
        ('ln -s /etc/hostname "$WF_OUTPUT"', "WF_OUTPUT is a link; it must be a regular file"),
        ('mkfifo "$WF_OUTPUT"', "WF_OUTPUT must be a regular file with one name"),
    ],
)
async def test_an_output_that_is_no_file_is_named(
    runner: CodeStepRunner, able: Any, made: str, says: str
) -> None:
    """The step fails by name and keeps what it printed, and the next step runs. CS-5."""
    able(Language.BASH)
    end = await runner.run(job(f"{made}; echo kept", Language.BASH), silent)
    assert (end.error, end.lines) == (says, (("stdout", "kept\n"),))
    assert (await runner.run(job("echo 1", Language.BASH), silent)).output == 1


async def test_bash_with_line_ends_of_windows(runner: CodeStepRunner, able: Any) -> None:
    """As JSON from such a machine has them: they are line ends, no part of words."""
    able(Language.BASH)
    source = 'for word in a b; do\r\n  printf "%s," "$word"\r\ndone\r\nexit 0\r\n'
    end = await runner.run(job(source, Language.BASH), silent)
    assert (end.error, end.output) == (None, "a,b,")


@pytest.mark.parametrize("language", FAIL)
async def test_fail(runner: CodeStepRunner, able: Any, language: Language) -> None:
    """Every language's exit status fails the step, with nothing else on stderr."""
    able(language)
    assert (await runner.run(job(FAIL[language], language), silent)).error == (
        "exited with status 7"
    )


@pytest.mark.parametrize("source", [REQUIRE, IMPORT])
@pytest.mark.parametrize("language", [Language.JAVASCRIPT, Language.TYPESCRIPT])
async def test_modules(runner: CodeStepRunner, able: Any, language: Language, source: str) -> None:
    """Node's languages accept `require` and `import`, without a word on stderr."""
    able(language)
    end = await runner.run(job(source + ";process.exitCode = 1", language), silent)
    assert end.error == "exited with status 1"
    assert (await runner.run(job(source, language), silent)).output == "function"


async def test_foreign_module_type(tmp_path: Path, runner: CodeStepRunner, able: Any) -> None:
    """A package.json above the folder of steps does not decide how a step is read."""
    able(Language.JAVASCRIPT)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    assert (await runner.run(job(REQUIRE, Language.JAVASCRIPT), silent)).output == "function"


async def test_python_is_not_the_servers(runner: CodeStepRunner) -> None:
    """A Python step does not see the server's packages or a module in its own folder."""
    source = """
import sys
open("json.py", "w").write("raise SystemExit(9)")
import json
try:
    import wfcore
except ImportError:
    print(json.dumps(sys.flags.isolated))
"""
    assert (await runner.run(job(source), silent)).output == 1


async def test_limits(tmp_path: Path, files: Any) -> None:
    """Memory, file size and open files are bounded; core dumps are off."""
    limits = StepLimits(memory=200 << 20, file=1 << 20, open_files=50)
    runner = CodeStepRunner(tmp_path / "limited", files, lambda: "art", limits)
    source = """
import json, resource
broken = []
try:
    bytearray(300 << 20)
except MemoryError:
    broken.append("memory")
try:
    open("big", "wb").write(bytes(2 << 20))
except OSError as error:
    broken.append(error.strerror)
try:
    kept = [open("/dev/null") for _ in range(60)]
except OSError as error:
    broken.append(error.strerror)
broken.append(resource.getrlimit(resource.RLIMIT_CORE)[1])
print(json.dumps(broken))
"""
    try:
        end = await runner.run(job(source), silent)
    finally:
        await runner.close()
    assert end.output == ["memory", "File too large", "Too many open files", 1]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> int:
    """Nothing pauses between attempts to store a file; how many there are."""
    pauses = [0.0] * len(artifacts.PAUSES_S)
    monkeypatch.setattr(artifacts, "PAUSES_S", pauses)
    return len(pauses) + 1


async def test_a_moment_without_the_bucket_costs_no_step(
    tmp_path: Path, files: Any, impatient: int
) -> None:
    """CS-15: storing is repeated under the same id until the last attempt; the step ran once."""
    real, seen = files.store, list[Any]()

    async def away(execution_id: str, id: str, *more: Any) -> Any:
        seen.append(id)
        if len(seen) < impatient:
            raise StoreUnavailable
        return await real(execution_id, id, *more)

    files.store = away
    runner = CodeStepRunner(tmp_path / "away", files, lambda: "art")
    try:
        end = await runner.run(job("echo hi > $WF_ARTIFACTS/a", Language.BASH), silent)
    finally:
        await runner.close()
    assert end.error is None
    assert [(one.id, one.size) for one in end.files] == [("art", 3)]
    assert seen == ["art"] * impatient


async def test_store_unavailable(tmp_path: Path, files: Any, impatient: int) -> None:
    """A store that cannot keep an artifact fails the attempt, which may be tried again."""
    tried = 0

    async def refuse(*_: object) -> None:
        nonlocal tried
        tried += 1
        raise StoreUnavailable

    files.store = refuse
    runner = CodeStepRunner(tmp_path / "refused", files, lambda: "art")
    try:
        end = await runner.run(job("echo > $WF_ARTIFACTS/a", Language.BASH), silent)
    finally:
        await runner.close()
    assert "artifacts" in (end.error or "")
    assert not end.permanent
    assert tried == impatient


async def test_no_room(loose_runner: CodeStepRunner, tmp_path: Path) -> None:
    """A folder that cannot be made postpones the step, of which nothing has run. EX-27."""
    await loose_runner.run(job("true", Language.BASH), silent)
    (own,) = (tmp_path / "loose").iterdir()
    own.rmdir()
    asked = job("echo 1", Language.BASH)
    end = await loose_runner.run(asked, silent)
    own.mkdir()
    assert "no folder" in (end.postponed or "")
    assert (await loose_runner.run(asked, silent)).output == 1
    assert alive(asked.execution_id) == []


async def test_nothing_after_close(tmp_path: Path, files: Any) -> None:
    """Closing ends what runs; the run returns an error, and no later run starts."""
    runner = CodeStepRunner(tmp_path / "closed", files, lambda: "art")
    asked = job("sleep 600", Language.BASH)
    running = asyncio.ensure_future(runner.run(asked, silent))
    await until(lambda: alive(asked.execution_id), within_s=60)
    await runner.close()
    assert "ended from outside" in ((await running).error or "")
    assert alive(asked.execution_id) == []
    assert list((tmp_path / "closed").iterdir()) == []
    with pytest.raises(RuntimeError):
        await runner.run(asked, silent)
