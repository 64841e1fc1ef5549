"""The settings of code steps: read from the environment, refused by name."""

from pathlib import Path

import pytest

from wfcore.errors import InvalidInput
from wfserver.settings import settings_from
from wfserver.step_settings import StepSettings, step_settings


def test_everything_has_a_default() -> None:
    """An empty environment is the default, and an empty value is no value."""
    empty = {"WFCORE_ISOLATION": "", "WFCORE_STEP_MEMORY": "", "WFCORE_STEP_READS": ""}
    assert step_settings({}) == step_settings(empty) == StepSettings()
    assert settings_from({}).steps == StepSettings()


def test_everything_is_read(tmp_path: Path) -> None:
    """Levels in any case, sizes with or without unit, paths apart by colons."""
    (tmp_path / "a").mkdir()
    env = {
        "WFCORE_ISOLATION": "Landlock",
        "WFCORE_MIN_ISOLATION": "process",
        "WFCORE_STEP_MEMORY": "2GB",
        "WFCORE_STEP_DISK": "1048576",
        "WFCORE_STEP_FILES": "100",
        "WFCORE_STEP_PROCESSES": "8",
        "WFCORE_STEP_READS": f"{tmp_path}:{tmp_path}/a/",
        "WFCORE_STEP_WRITES": f"{tmp_path}/a",
    }
    assert step_settings(env) == StepSettings(
        isolation="landlock",
        minimum="process",
        memory=2 << 30,
        disk=1 << 20,
        files=100,
        processes=8,
        reads=(str(tmp_path), f"{tmp_path}/a"),
        writes=(f"{tmp_path}/a",),
    )
    assert step_settings({"WFCORE_ISOLATION": "auto"}).isolation is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("WFCORE_ISOLATION", "bubblewrap"),
        ("WFCORE_MIN_ISOLATION", "auto"),
        ("WFCORE_STEP_MEMORY", "much"),
        ("WFCORE_STEP_MEMORY", "1MB"),
        ("WFCORE_STEP_DISK", "-1"),
        ("WFCORE_STEP_FILES", "1"),
        ("WFCORE_STEP_PROCESSES", "²"),
        ("WFCORE_STEP_READS", "relative/path"),
        ("WFCORE_STEP_READS", "/"),
        ("WFCORE_STEP_READS", "/usr/.."),
        ("WFCORE_STEP_WRITES", "/there/is/no/such/path"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(name: str, value: str) -> None:
    """A mistake is an error that names the variable, never a silent default."""
    with pytest.raises(InvalidInput, match=name) as refused:
        step_settings({name: value})
    assert refused.value.field == name
