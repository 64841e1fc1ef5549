"""JavaScript and TypeScript on Bun: the same world as on Node, by the word of the step."""

import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from adapters_runtime.code.runner import CodeStepRunner
from adapters_runtime.sandbox.isolation.config import LANDLOCK, NAMESPACE
from adapters_runtime.sandbox.isolation_level import Isolation
from wfcore.errors import InvalidDefinition
from wfcore.model.work import SCRIPTS
from wfcore.model.workflow import CodeStep, Language, Runtime
from wfcore.ports.runtime import StepJob
from wfcore.rules.execution.start import capabilities_of, capabilities_with
from wfcore.testing.contracts.steps import Lines, job, silent
from wfcore.testing.fakes_running import DictFiles
from wfserver.definitions.read import checked

SAYS = "console.log(process.versions.bun ? 'bun' : 'node')"
FLOW = """
name: flow
steps:
  - name: work
    kind: code
    language: {language}
    runtime: {runtime}
    source: "enum Size {{ small = 1 }}"
"""


@pytest.fixture(autouse=True)
def _able(able: Callable[..., None]) -> None:
    able(Language.JAVASCRIPT, Runtime.BUN)


@pytest.fixture(params=[NAMESPACE, LANDLOCK])
async def on_bun(
    request: pytest.FixtureRequest, tmp_path: Path, files: Any
) -> AsyncIterator[CodeStepRunner]:
    """A runner whose setting says Bun."""
    isolation = Isolation(forced=request.param)
    made = CodeStepRunner(
        tmp_path / "bun", files, lambda: "a", isolation=isolation, javascript=Runtime.BUN
    )
    if (await made.level()).name != request.param:
        pytest.skip(f"no level {request.param} here")
    yield made
    await made.close()


def with_runtime(asked: StepJob, runtime: Runtime | None) -> StepJob:
    return evolve(asked, step=evolve(asked.step, runtime=runtime))


async def test_the_step_decides_before_the_setting(
    runner: CodeStepRunner, on_bun: CodeStepRunner
) -> None:
    """`runtime` takes precedence; without it the setting counts, and without that it is Node."""
    asked = job(SAYS, Language.JAVASCRIPT)
    for there, otherwise in ((runner, "node"), (on_bun, "bun")):
        for named, runs in ((None, otherwise), (Runtime.BUN, "bun"), (Runtime.NODE, "node")):
            assert (await there.run(with_runtime(asked, named), silent)).output == runs


async def test_the_world_of_a_step(on_bun: CodeStepRunner, files: DictFiles) -> None:
    """Variables, context, output and artifacts, with `import` and `require` in one file. CS-1."""
    source = """
      import { writeFileSync } from "node:fs";
      const context = require(process.env.WF_CONTEXT);
      writeFileSync(process.env.WF_ARTIFACTS + "/x", "file");
      const said = [process.env.WF_VAR_word, context.variables.word, process.cwd().slice(-4)];
      await Bun.write(process.env.WF_OUTPUT, JSON.stringify(said));
    """
    asked = job(
        source,
        Language.JAVASCRIPT,
        environment={"WF_VAR_word": "ü"},
        context={"variables": {"word": "ü"}},
    )
    end = await on_bun.run(asked, silent)
    assert (end.error, end.output) == (None, ["ü", "ü", "work"])
    assert [file.name for file in end.files] == ["x"]


async def test_typescript_may_be_more_than_types(on_bun: CodeStepRunner) -> None:
    """Bun compiles it itself, and what Node made of it at apply is not used."""
    asked = job("enum Size { small = 7 }; console.log(Size.small as number)", Language.TYPESCRIPT)
    made = evolve(asked, step=evolve(asked.step, javascript="throw 1"))
    assert (await on_bun.run(made, silent)).output == 7


async def test_nothing_is_installed_on_the_way(on_bun: CodeStepRunner) -> None:
    """What a step imports and does not have is an error, not a call to a registry."""
    with socket.create_server(("127.0.0.1", 0)) as registry:
        registry.setblocking(False)
        url = f"http://127.0.0.1:{registry.getsockname()[1]}"
        asked = job(
            "import 'left-pad'",
            Language.JAVASCRIPT,
            environment={"BUN_CONFIG_REGISTRY": url},
            timeout_ms=10_000,
        )
        asked = evolve(asked, step=evolve(asked.step, network=True))
        end = await on_bun.run(asked, silent)
        assert "Cannot find package 'left-pad'" in str(end.error)
        with pytest.raises(BlockingIOError):
            registry.accept()


async def test_lines_come_while_it_runs(on_bun: CodeStepRunner) -> None:
    """Each line is told when it is written."""
    said = Lines()
    await on_bun.run(
        job("console.log('one'); console.log('two')", Language.JAVASCRIPT, log=True), said
    )
    assert said.of("stdout") == "one\ntwo\n"


async def test_too_much_memory_ends_it(on_bun: CodeStepRunner) -> None:
    """Its own limit or the watch over the tree: it fails either way."""
    source = "const held = []; for (;;) held.push(new Uint8Array(1 << 24).fill(1))"
    assert (await on_bun.run(job(source, Language.JAVASCRIPT), silent)).error


def test_what_bun_takes_is_not_shown_to_node() -> None:
    """TypeScript that is more than types is refused for Node when it is applied, not for Bun."""
    (step,) = checked(FLOW.format(language="typescript", runtime="bun").encode(), "").steps
    assert isinstance(step, CodeStep)
    assert (step.runtime, step.javascript) == (Runtime.BUN, None)


def test_a_missing_bun_is_named_at_apply(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the path of the field, and what to install."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(InvalidDefinition) as refused:
        checked(FLOW.format(language="javascript", runtime="bun").encode(), "")
    (problem,) = refused.value.problems
    assert problem.path == "steps[0].runtime"
    assert "npm install -g bun" in problem.message


@pytest.mark.parametrize(
    ("language", "runtime", "says"),
    [
        ("python", "bun", "runtime: is for language javascript and typescript only"),
        ("javascript", "deno", "runtime: unknown value 'deno'; known: node, bun"),
    ],
)
def test_runtimes_that_cannot_be(language: str, runtime: str, says: str) -> None:
    """A runtime of another language, and one that nobody knows. PK-2."""
    with pytest.raises(InvalidDefinition) as refused:
        checked(FLOW.format(language=language, runtime=runtime).encode(), "", runs_here=False)
    assert says in str(refused.value)


def test_a_worker_takes_what_its_runtimes_run() -> None:
    """A step that names its runtime needs that one, whatever else runs its language there."""
    definition = checked(
        FLOW.format(language="javascript", runtime="bun").encode(), "", runs_here=False
    )
    (word,) = capabilities_of(definition)
    assert word == "language:javascript:bun"
    assert word in capabilities_with(())
    assert word in capabilities_with((), SCRIPTS, {Language.JAVASCRIPT: (Runtime.BUN,)})
    assert word not in capabilities_with((), (), {Language.JAVASCRIPT: (Runtime.NODE,)})
