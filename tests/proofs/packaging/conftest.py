"""What is released, built once; once more, so that it can be compared; and the client."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.wheels import RELEASE, ROOT, build

Built = tuple[dict[str, Path], dict[str, Path]]


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Wheel and sdist, by ending: the released ones, or those of this tree."""
    released = RELEASE.glob("wfcore-*") if RELEASE else ()  # the client's wheel is another one
    given = {path.name.rpartition(".")[2]: path for path in released}
    return given or build(tmp_path_factory.mktemp("release") / "here", 0)


@pytest.fixture(scope="session")
def built(release: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The release, and another one from elsewhere and later."""
    return release, build(tmp_path_factory.mktemp("elsewhere") / "later", 86_400 * 400)


@pytest.fixture(scope="session")
def client_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("client")
    command = (sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", folder)
    subprocess.run((*command, ROOT / "client"), check=True, capture_output=True)
    (wheel,) = folder.iterdir()
    return wheel
