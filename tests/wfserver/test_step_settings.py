"""The settings of code steps: read from the environment, refused by name."""

import re
from pathlib import Path

import pytest

from wfcore.errors import InvalidInput
from wfserver.settings.record import UnknownSetting, settings_from
from wfserver.settings.steps import StepSettings, step_settings


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
        ("WFCORE_STEP_WRITES", "/dev/shm"),
        ("WFCORE_STEP_READS", "/usr/../proc/self"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(name: str, value: str) -> None:
    """A mistake is an error that names the variable, never a silent default."""
    with pytest.raises(InvalidInput, match=name) as refused:
        step_settings({name: value})
    assert refused.value.field == name


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("WFCORE_CONCURENCY", "; did you mean WFCORE_CONCURRENCY?"),
        ("WFCORE_DATE", "; did you mean WFCORE_DATA?"),
        ("WFCORE_AI_LOCAL_BASEURL", "; did you mean WFCORE_AI_LOCAL_BASE_URL?"),
        ("WFCORE_", ""),
    ],
)
def test_a_setting_that_nobody_reads_is_an_error(name: str, meant: str) -> None:
    """A typo would leave the default in force: it is named, with what may have been meant."""
    with pytest.raises(UnknownSetting) as refused:
        settings_from({name: "1"}, data="here", store="memory:", host="h", port=1)
    assert (refused.value.field, refused.value.exit_status) == (name, 2)
    assert refused.value.fix.startswith(f"there is no such setting{meant}")


def test_every_setting_that_is_documented_is_known() -> None:
    """What docs/operating.md names is read, with options that win over it or without."""
    text = (Path(__file__).parents[2] / "docs" / "operating.md").read_text()
    named = set(re.findall(r"`(WFCORE_[A-Z_]+)`", text))
    assert "WFCORE_LEASE" in named
    unset = dict.fromkeys(named, "")
    assert settings_from(unset) == settings_from({})
    assert settings_from(unset, data="x", store="memory:", host="h", port=1)


def test_the_cache_of_records_has_a_size() -> None:
    """`WFCORE_CACHE` is a size in bytes; too small or unreadable ones are refused by name."""
    assert settings_from({}).cache == 24 << 20
    assert settings_from({"WFCORE_CACHE": "64MB"}).cache == 64 << 20
    for odd in ("lots", "1KB", "-5MB"):
        with pytest.raises(InvalidInput) as refusal:
            settings_from({"WFCORE_CACHE": odd})
        assert refusal.value.field == "WFCORE_CACHE"
