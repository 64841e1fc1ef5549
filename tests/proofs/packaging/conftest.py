"""What is released, built once: `built` twice over, so that it can be compared, and the client."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.wheels import RELEASE, ROOT, build

Built = tuple[dict[str, Path], dict[str, Path]]


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Wheel and sdist, by ending: the released ones, and others from elsewhere and later."""
    folder = tmp_path_factory.mktemp("release")
    released = RELEASE.glob("wfcore-*") if RELEASE else ()  # the client's wheel is another one
    given = {path.name.rpartition(".")[2]: path for path in released}
    return given or build(folder / "here", 0), build(folder / "elsewhere" / "later", 86_400 * 400)


@pytest.fixture(scope="session")
def client_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("client")
    command = (sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", folder)
    subprocess.run((*command, ROOT / "client"), check=True, capture_output=True)
    (wheel,) = folder.iterdir()
    return wheel
