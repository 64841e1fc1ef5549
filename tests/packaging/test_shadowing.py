"""The packages of this distribution have plain names: what takes the place of one is found out."""

import subprocess
import sys
from pathlib import Path

import pytest


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
