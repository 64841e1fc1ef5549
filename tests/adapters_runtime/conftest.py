"""What tests of the runtime share: a runner, and interpreters that may be missing."""

import os
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from adapters_runtime.code.languages import Interpreters
from adapters_runtime.code.runner import CodeStepRunner
from adapters_runtime.sandbox.isolation.config import PROCESS
from adapters_runtime.sandbox.isolation_level import Isolation
from wfcore.model.workflow import Language, Runtime
from wfcore.testing.fakes_running import DictFiles


@pytest.fixture
def files() -> DictFiles:
    return DictFiles()


@pytest.fixture
def new_id() -> Iterator[str]:
    return (f"art_{number}" for number in count())


@pytest.fixture
async def runner(
    tmp_path: Path, files: DictFiles, new_id: Iterator[str]
) -> AsyncIterator[CodeStepRunner]:
    runner = CodeStepRunner(tmp_path / "steps", files, new_id.__next__)
    yield runner
    await runner.close()
    assert list((tmp_path / "steps").iterdir()) == []


@pytest.fixture
async def loose_runner(
    tmp_path: Path, files: DictFiles, new_id: Iterator[str]
) -> AsyncIterator[CodeStepRunner]:
    """A runner at the lowest level, where a step can get at its supervisor."""
    isolation = Isolation(forced=PROCESS)
    runner = CodeStepRunner(tmp_path / "loose", files, new_id.__next__, isolation=isolation)
    yield runner
    await runner.close()
    assert list((tmp_path / "loose").iterdir()) == []


@pytest.fixture(scope="session")
def able() -> Callable[..., None]:
    """Skips the test where a language cannot run here; in CI that is a failure."""
    interpreters = Interpreters(os.environ["PATH"])

    def check(language: Language, runtime: Runtime | None = None) -> None:
        state = interpreters.find(language, runtime)
        if not state.available and os.environ.get("CI") == "true":
            pytest.fail(f"{language} is missing: {state.cure}")
        if not state.available:
            pytest.skip(f"{language} is missing: {state.cure}")

    return check
