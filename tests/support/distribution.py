"""Programs of the distribution that tests start. Without one, CI fails and others skip."""

import os
import shutil
from typing import NoReturn

import pytest


def missing(what: str) -> NoReturn:
    """Skip for want of *what*, but in CI, which installs everything."""
    assert os.environ.get("CI") != "true", what
    pytest.skip(what)


def program(name: str, package: str) -> str:
    """The path of a program of *package*, also where only root finds it."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin")
    return found or missing(f"no {name}: apt-get install {package}")
