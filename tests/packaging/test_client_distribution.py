"""The distribution `wfcore-client`: built from this tree, and enough by itself."""

import asyncio
import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from adapters_http.config import HttpConfig
from http_world import a_world

ROOT = Path(__file__).parents[2]
OURS = ROOT / "src" / "wfcore_client"
PROGRAM = """
import sys
from wfcore_client import Client, verify_callback
url, key, approval = sys.argv[1:]
with Client(url, key) as wf:
    seen = wf.approval(approval)
    print(wf.approve(seen).status, wf.execution(seen.execution_id).status)
print(*sorted({"wfcore", "attr", "attrs", "cattrs"} & set(sys.modules)), "nothing else")
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("client")
    command = (sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", folder)
    subprocess.run((*command, ROOT / "client"), check=True, capture_output=True)
    (built,) = folder.iterdir()
    return built


def needed(name: str) -> Iterator[str]:
    """A distribution that is installed here, and all that it needs."""
    yield name
    for text in distribution(name).requires or ():
        one = Requirement(text)
        if one.marker is None or one.marker.evaluate({"extra": ""}):
            yield from needed(one.name)


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel, httpx2 and what that needs: nothing else, and no download."""
    venv = tmp_path_factory.mktemp("fresh") / "venv"
    subprocess.run((sys.executable, "-m", "venv", "--without-pip", venv), check=True)
    found = venv / "bin" / "python"
    install = (sys.executable, "-m", "pip", "--python", found, "install", "--quiet")
    subprocess.run((*install, "--no-index", "--no-deps", wheel), check=True, capture_output=True)
    (site,) = venv.glob("lib/python*/site-packages")
    for name in set(needed("httpx2")):
        for file in distribution(name).files or ():
            top = site / file.parts[0]
            if file.parts[0] != ".." and not top.exists():
                top.symlink_to(Path(str(distribution(name).locate_file(file.parts[0]))))
    return found


def test_it_is_the_package_of_this_tree(wheel: Path) -> None:
    """The same files as in `wfcore`, byte for byte: either may be installed over the other."""
    with zipfile.ZipFile(wheel) as built:
        found = {
            name: hashlib.sha256(built.read(name)).hexdigest()
            for name in built.namelist()
            if name.endswith((".py", "py.typed"))
        }
    assert found == {
        f"wfcore_client/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest()
        for path in OURS.iterdir()
        if path.suffix in (".py", ".typed")
    }


def test_it_says_what_it_needs(wheel: Path) -> None:
    """httpx2 alone, and the version of the server that it was built with."""
    with zipfile.ZipFile(wheel) as built:
        (name,) = (one for one in built.namelist() if one.endswith("METADATA"))
        lines = built.read(name).decode().splitlines()
    assert [line for line in lines if line.startswith("Requires-Dist")] == [
        "Requires-Dist: httpx2<3,>=2.0"
    ]
    assert f"Version: {distribution('wfcore').version}" in lines


async def test_it_decides_an_approval_from_a_fresh_environment(
    python: Path, tmp_path: Path
) -> None:
    """Where neither wfcore nor attrs is installed, the client reads and decides."""
    async with a_world(tmp_path, HttpConfig()) as world:
        _, approval = await world.paused()
        command = (str(python), "-I", "-c", PROGRAM, world.url, world.key.text, approval)
        run = await asyncio.create_subprocess_exec(*command, stdout=-1, stderr=-1)
        out, err = await run.communicate()
    assert out.decode().splitlines() == ["APPROVED RUNNING", "nothing else"], err.decode()


def test_what_is_made_is_current() -> None:
    """`shapes`, `backoff` and `synchronous` are what client/generate.py makes now."""
    words = [sys.executable, ROOT / "client" / "generate.py", "--check"]
    run = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
    assert (run.stdout, run.returncode) == ("", 0), run.stderr
