"""
A stranger at the door: the wheels in a fresh environment, the documentation, and nothing else.

Who embeds the library, who tests with it, and who calls a server from elsewhere each do what the
pages tell them. `make release` has all tutorials done with the wheels that it built.
"""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, Reader
from tests.support.wheels import PROJECT, RELEASE, ROOT, brought, install, required

PAGES = [
    "howto/test-definitions.md",
    "howto/check-definitions.md",
    "tutorial/test-your-own-rules.md",
]
"""Of the tester, who needs no server."""
LONG = ["tutorial/use-as-a-library.md", "tutorial/run-a-server.md", "simulator.md", "testing.md"]

MISTAKES = """
import asyncio
import wfcore as wf

def step(name, **more):
    return wf.CodeStep(name, wf.Language.COMMAND, command=("pay",), **more)

MISTAKES = {
    "steps[1].name: ": wf.Definition("A", (step("a"), step("a"))),
    "steps[0].name: ": wf.Definition("A", (step("a.b"),)),
    "steps: ": wf.Definition("A", ()),
    "name: ": wf.Definition("", (step("a"),)),
    "steps[0].timeout: ": wf.Definition("A", (step("a", timeout_ms=-1),)),
    "steps[0].source: ": wf.Definition("A", (wf.CodeStep("a", wf.Language.PYTHON),)),
    "steps[0]: ": wf.Definition("A", (None,)),
    "steps[0].message: ": wf.Definition("A", (wf.ApprovalStep("a", "{{ steps.b.output }}"),)),
}

async def main():
    services = wf.in_memory()
    ann = await wf.ensure_account(services, "ann@example.org")
    for path, definition in MISTAKES.items():
        try:
            await wf.apply_workflow(services, ann.id, definition)
        except wf.InvalidDefinition as error:
            assert str(error).startswith(path), (path, str(error))
        else:
            raise AssertionError(path)
    print("refused", len(MISTAKES))

asyncio.run(main())
"""
CALLER = """
import sys
from wfcore_client import Client, Conflict, NotFound
from wfcore_client.shapes import Verdict

with Client(sys.argv[1], sys.argv[2]) as wf:
    (workflow,) = wf.list_workflows().items
    started = wf.start(workflow.id, {"returnDays": 30})
    asked = wf.rest(started.execution_id)
    (listed,) = wf.approvals_of(started.execution_id).approvals
    approval = wf.approval(listed.id)
    print(asked.status, wf.approve(approval).status, wf.rest(started.execution_id).status)
    for again, error in (lambda: wf.decide(approval.id, Verdict.REJECT), Conflict), (
        lambda: wf.approval("appr_0"), NotFound
    ):
        try:
            again()
        except error as refused:
            print(type(refused).__name__)
"""


@pytest.fixture(scope="module")
def python(release, client_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with both wheels, what they need, and FastAPI."""
    wheel = release["whl"]
    needed = required(wheel, "server", "ai", "testing") | required(client_wheel)
    return install(
        tmp_path_factory.mktemp("fresh") / "venv",
        [wheel, client_wheel],
        needed | brought(["fastapi"]),
    )


def ran(python: Path, cwd: Path, *words: str) -> str:
    """What an isolated program prints, which must end well."""
    command = (str(python), "-I", *words)
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_has_every_file_of_its_packages(release) -> None:
    """Stubs, marks of typing, pages, words and vectors: what is in the tree is installed."""
    packages = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    wanted = {
        str(path.relative_to(ROOT / "src"))
        for package in packages
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(release["whl"]) as wheel:
        found = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert found == wanted
    assert {"wfcore/py.typed", "wfcore/__init__.pyi"} <= found


def test_an_embedder_is_told_of_each_mistake(python: Path, tmp_path: Path) -> None:
    """A definition built from records is refused with the path that a document would have."""
    assert ran(python, tmp_path, "-c", MISTAKES) == "refused 8\n"


@pytest.mark.parametrize("page", [*PAGES, *(LONG if RELEASE else ())])
def test_a_page_needs_nothing_but_the_wheels(page: str, python: Path, tmp_path: Path) -> None:
    """Every block of the page does what it says; the sources are somewhere else."""
    needs_sources = "examples/own_store.py" if page == "testing.md" else None
    if needs_sources:
        (tmp_path / "own_store.py").write_text((ROOT / needs_sources).read_text())
    reader = Reader(tmp_path, examples=False, binaries=python.parent)
    try:
        reader.follow(DOCS / page)
    finally:
        reader.end()


def test_a_caller_needs_a_url_and_a_key(python: Path, tmp_path: Path) -> None:
    """The client starts, decides and is refused with typed errors, at a server of the wheel."""
    reader = Reader(tmp_path, examples=False, binaries=python.parent)
    try:
        reader.start(f"wfcore up --port {reader.port}", "up")
        key = (tmp_path / "wfcore-data" / "first.key").read_text().strip()
        said = ran(python, tmp_path, "-c", CALLER, f"http://127.0.0.1:{reader.port}", key)
    finally:
        reader.end()
    assert said.splitlines() == ["AWAITING_APPROVAL APPROVED COMPLETED", "Conflict", "NotFound"]


@pytest.mark.parametrize(
    ("removed", "left"), [("wfcore-client", "wfserver.compose"), ("wfcore", "wfcore_client")]
)
def test_removing_one_distribution_leaves_the_other_whole(
    removed: str, left: str, release, client_wheel: Path, tmp_path: Path
) -> None:
    """`wfcore` and `wfcore-client` own no file together."""
    wheel = release["whl"]
    needed = required(wheel, "server") | required(client_wheel)
    python = install(tmp_path / "venv", [wheel, client_wheel], needed)
    pip = (sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check")
    subprocess.run((*pip, "uninstall", "--yes", removed), check=True, capture_output=True)
    assert ran(python, tmp_path, "-c", f"import {left}; print('whole')") == "whole\n"
