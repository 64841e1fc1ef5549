"""Steps that import packages: found offline, in every way of importing, and told when gone."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import pytest
from attrs import evolve

from adapters_runtime.code.packages.environments import PackageEnvironments
from adapters_runtime.code.runner import CodeStepRunner
from adapters_runtime.sandbox.isolation.config import LADDER, PROCESS
from adapters_runtime.sandbox.isolation_level import Isolation
from tests.support.package_index import Shelf, registry
from wfcore.model.work import SCRIPTS
from wfcore.model.workflow import Language, Needs, Runtime
from wfcore.ports.runtime import StepEnd, StepJob
from wfcore.testing.contracts.steps import job, silent
from wfcore.testing.fakes_running import DictFiles

TINY = ("tiny==1.1",)
MODERN = ("@scope/modern@2.0.0", "common@1.0.0")


@pytest.fixture(scope="module")
def environments(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PackageEnvironments]:
    root = tmp_path_factory.mktemp("shelf")
    with registry() as npm:
        yield PackageEnvironments(root / "packages", Shelf(root, npm).environment)


@asynccontextmanager
async def a_runner(
    root: Path, environments: PackageEnvironments, level: str | None = None
) -> AsyncIterator[CodeStepRunner]:
    """A runner whose data folder, where the packages are, is nobody else's to see."""
    made = CodeStepRunner(
        root / "steps",
        DictFiles(),
        (f"art_{number}" for number in count()).__next__,
        isolation=Isolation(level, minimum=PROCESS, hidden=(str(environments.root.parent),)),
        environments=environments,
    )
    try:
        yield made
    finally:
        await made.close()


@pytest.fixture
async def runner(
    tmp_path: Path, environments: PackageEnvironments
) -> AsyncIterator[CodeStepRunner]:
    async with a_runner(tmp_path, environments) as made:
        yield made


def bringing(source: str, language: Language, *packages: str, **more: bool) -> StepJob:
    """A job whose step asks for packages."""
    made = job(source, language, **more)  # type: ignore[arg-type]
    field = "requirements" if language is Language.PYTHON else "packages"
    return evolve(made, step=evolve(made.step, **{field: packages}))


async def ran(runner: CodeStepRunner, environments: PackageEnvironments, asked: StepJob) -> StepEnd:
    assert asked.step.needs is not None
    return await runner.run(await pinned(environments, asked), silent)


async def pinned(environments: PackageEnvironments, asked: StepJob) -> StepJob:
    """The same job with its packages installed, and their lock."""
    assert asked.step.needs is not None
    lock = (await environments.prepare(asked.step.needs)).lock
    return evolve(asked, step=evolve(asked.step, lock=lock))


PYTHON = {
    "a module and what it needs": (
        "import tiny, other, json; print(json.dumps([tiny.__version__, other.__version__]))",
        ["1.1", "2.0"],
    ),
    "and its children": (
        "import subprocess, sys, tiny\n"
        "code = 'import tiny; print(tiny.__version__)'\n"
        "subprocess.run([sys.executable, '-c', code], check=True)",
        1.1,
    ),
    "nothing of the folder it is in": (
        "import os, tiny\nopen('other2.py', 'w').close()\n"
        "try:\n    import other2\nexcept ImportError:\n    print('none')",
        "none",
    ),
}


@pytest.mark.parametrize("case", PYTHON)
async def test_python_imports_what_was_installed(
    runner: CodeStepRunner, environments: PackageEnvironments, case: str
) -> None:
    """A step sees its packages, at the version that it asked for, and what came along. PK-5."""
    source, output = PYTHON[case]
    end = await ran(runner, environments, bringing(source, Language.PYTHON, *TINY))
    assert (end.output, end.error) == (output, None)


async def test_each_step_sees_its_own_version(
    runner: CodeStepRunner, environments: PackageEnvironments
) -> None:
    """Two steps of one workflow may want two versions. PK-5."""
    for version in ("1.0", "1.1"):
        source = "import tiny; print('v' + tiny.__version__)"
        asked = bringing(source, Language.PYTHON, f"tiny=={version}")
        assert (await ran(runner, environments, asked)).output == f"v{version}"


async def test_a_step_without_requirements_sees_none(
    runner: CodeStepRunner, environments: PackageEnvironments
) -> None:
    """What one step brings, others do not have."""
    await ran(runner, environments, bringing("import tiny", Language.PYTHON, *TINY))
    end = await runner.run(job("import tiny"), silent)
    assert "No module named 'tiny'" in (end.error or "")


JAVASCRIPT = {
    "require": "const c = require('common'); console.log(c.n)",
    "import": "import { n } from '@scope/modern'; console.log(n)",
    "import of a package that is CommonJS": "import c from 'common'; console.log(c.n)",
    "import in time": "const m = await import('@scope/modern'); console.log(m.n); export {}",
    "a script that it wrote": (
        "require('fs').writeFileSync('x.cjs', \"console.log(require('common').n)\");"
        "require('child_process').execFileSync(process.execPath, ['x.cjs'], {stdio: 'inherit'})"
    ),
}


@pytest.mark.parametrize("runtime", Runtime)
@pytest.mark.parametrize("language", SCRIPTS)
@pytest.mark.parametrize("case", JAVASCRIPT)
async def test_javascript_imports_what_was_installed(
    runner: CodeStepRunner,
    environments: PackageEnvironments,
    able: Callable[..., None],
    case: str,
    language: Language,
    runtime: Runtime,
) -> None:
    """`require` and `import` both find the packages, and what those import themselves. PK-5."""
    able(language, runtime)
    source = JAVASCRIPT[case]
    if language is Language.TYPESCRIPT:
        source = f"type None = null;\n{source}"
    asked = bringing(source, language, *MODERN)
    asked = evolve(asked, step=evolve(asked.step, runtime=runtime))
    end = await ran(runner, environments, asked)
    assert (end.output, end.error) == (2 if "modern" in source else 1, None)


LOCKED = {
    Language.PYTHON: ("tiny==1.0", "import tiny; print(tiny.__version__)", 1.0),
    Language.JAVASCRIPT: ("common@1.0.0", "console.log(require('common').n)", 1),
}


@pytest.mark.parametrize("language", LOCKED)
async def test_a_step_whose_packages_are_gone_gets_them_again(
    tmp_path: Path, language: Language
) -> None:
    """
    A step whose server lacks its packages, because it never had them or they were deleted, has them
    installed as they are pinned: once, however many steps of however many servers wait. PK-5.
    """
    package, source, output = LOCKED[language]
    with registry() as npm:
        shelf = Shelf(tmp_path / "shelf", npm)
        environment = shelf.by_index()
        elsewhere = PackageEnvironments(tmp_path / "elsewhere", environment)
        asked = await pinned(elsewhere, bringing(source, language, package))
        both = [PackageEnvironments(tmp_path / "packages", environment) for _ in range(2)]
        async with (
            a_runner(tmp_path / "a", both[0]) as one,
            a_runner(tmp_path / "b", both[1]) as other,
        ):
            for _ in range(2):
                npm.asked.clear()
                runs = (runner.run(asked, silent) for runner in (one, other, one, other))
                ends = await asyncio.gather(*runs)
                assert [(end.output, end.error) for end in ends] == [(output, None)] * 4
                files = [path for path in npm.asked if path.endswith((".whl", ".tgz"))]
                assert len(files) == len(set(files)) > 0
                assert both[0].usage().count == 1
                shutil.rmtree(tmp_path / "packages")


async def test_what_is_pinned_for_another_platform_is_not_installed(
    tmp_path: Path, environments: PackageEnvironments
) -> None:
    """Nor resolved anew: a server that fits may still run the step. PK-9."""
    asked = await pinned(environments, bringing("import tiny", Language.PYTHON, *TINY))
    foreign = (asked.step.lock or "").replace("python 3.", "python 2.")
    asked = evolve(asked, step=evolve(asked.step, lock=foreign))
    before = environments.usage()
    async with a_runner(tmp_path, environments) as runner:
        end = await runner.run(asked, silent)
    assert "pinned for another platform" in (end.postponed or "")
    assert (end.lasting, environments.usage()) == (True, before)


TRY_TO_WRITE = """
import os, tiny
place = os.path.dirname(tiny.__file__)
def tried(deed):
    try:
        deed()
    except OSError:
        return "refused"
    return "done"
print(tried(lambda: open(tiny.__file__, "a")), tried(lambda: open(place + "/new.py", "w")),
      tried(lambda: os.remove(tiny.__file__)), tried(lambda: os.rename(place, place + "2")))
"""


@pytest.mark.parametrize("level", LADDER)
async def test_at_every_level_packages_are_found_and_kept(
    tmp_path: Path, environments: PackageEnvironments, level: str
) -> None:
    """
    However a step is kept apart, its packages are there for it and not for others, and no step
    changes them (but at the level that protects no files). PK-4, PK-5.
    """
    data = environments.root.parent
    data.chmod(0o700)
    (data / "secret").write_text("s3cret")
    async with a_runner(tmp_path, environments, level) as runner:
        if (await runner.level()).name != level:
            pytest.skip(f"{level} cannot be had here")
        for source, language, packages in (
            ("import tiny; print(tiny.__version__)", Language.PYTHON, TINY),
            ("import { n } from '@scope/modern'; console.log(n)", Language.JAVASCRIPT, MODERN),
            ("console.log(require('common').n)", Language.JAVASCRIPT, MODERN),
        ):
            end = await ran(runner, environments, bringing(source, language, *packages))
            assert (end.output in (1.1, 2, 1), end.error) == (True, None)
        if level == PROCESS:
            return
        end = await ran(runner, environments, bringing(TRY_TO_WRITE, Language.PYTHON, *TINY))
        assert (end.output, end.error) == (" ".join(["refused"] * 4), None)
        found = environments.find(await environments.prepare(Needs(Language.PYTHON, TINY)))
        for secret in (f"{found}/tiny.py", f"{data}/secret"):
            end = await runner.run(job(f"print(open({secret!r}).read())"), silent)
            assert "Error" in (end.error or "")


async def test_a_step_finds_what_was_installed_again(
    runner: CodeStepRunner, environments: PackageEnvironments
) -> None:
    """What was deleted and installed again is seen at once, by steps made ready before too."""
    asked = bringing("import tiny; print('there')", Language.PYTHON, "tiny==1.0")
    asked = await pinned(environments, asked)
    assert asked.step.needs is not None
    for _ in range(2):
        assert (await ran(runner, environments, asked)).output == "there"
        shutil.rmtree(Path(environments.find(asked.step.needs) or "").parents[1])
