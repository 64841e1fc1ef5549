"""What can be said of the image without building it; `make image` builds it and runs it."""

import json
import re
from pathlib import Path

import pytest

from adapters_runtime.sandbox.isolation_level import Level
from wfserver.doctor.isolation import report
from wfserver.settings.isolation import step_isolation
from wfserver.settings.record import Settings

from .containerfile import HERE, PROFILE, Follower, in_context, lines_of, refused_by_profile

LINES = lines_of()


def _texts(word: str) -> list[str]:
    return [text for one, text in LINES if one == word]


def test_every_instruction_is_followed() -> None:
    """There is no line that `make image` would not execute."""
    assert {word for word, _ in LINES} == Follower.FOLLOWED | Follower.SAID


def test_what_it_is_built_from_is_pinned() -> None:
    """The base by its digest, and Python's packages by their hashes."""
    bases = [text for text in _texts("ARG") if text.startswith("BASE=")]
    assert re.fullmatch(r"BASE=\S+/debian:\w+-\d{8}-slim@sha256:[0-9a-f]{64}", bases[0])
    assert [text.split(" ")[0] for text in _texts("FROM")] == ["${BASE}", "${BASE}"]
    installs = [each for text in _texts("RUN") for each in re.findall(r"pip install[^|&]*", text)]
    assert all("--require-hashes" in one or "--no-deps --no-index" in one for one in installs)
    (extras,) = (text for text in _texts("ARG") if text.startswith("EXTRAS="))
    for name in ("server", *extras.split('"')[1].split()):
        assert (HERE / "requirements" / f"{name}.txt").exists()


def test_what_is_copied_is_in_the_context() -> None:
    """Every COPY names what is there; `.dockerignore` lets in that and nothing else."""
    named = {
        name.rstrip("/")
        for text in _texts("COPY")
        if not text.startswith("--from")
        for name in text.split()[:-1]
    }
    assert named == set(in_context())
    assert [name for name in named if not (HERE / name).exists()] == []


def test_how_it_is_run() -> None:
    """As a number that is not root's, with its data in a volume, and ended by SIGTERM."""
    said = dict(LINES)
    (user, group) = said["USER"].split(":")
    assert int(user) >= 10_000 <= int(group)
    assert json.loads(said["VOLUME"]) == [said["WORKDIR"]]
    assert f"WFCORE_DATA={said['WORKDIR']}" in said["ENV"]
    assert (said["STOPSIGNAL"], json.loads(said["CMD"])) == ("SIGTERM", ["serve"])
    assert json.loads(said["ENTRYPOINT"])[-1] == "wfcore"
    assert "/healthz" in said["HEALTHCHECK"]


def test_the_filter_refuses_only_what_steps_do_not_need() -> None:
    """The profile leaves what namespaces take, and names the calls in order, each once."""
    refused = refused_by_profile()
    assert refused == sorted(set(refused))
    assert not {"clone", "unshare", "mount", "umount2", "pivot_root"} & set(refused)
    assert json.loads(PROFILE.read_text())["defaultAction"] == "SCMP_ACT_ALLOW"


def test_doctor_names_flags_in_a_container(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Those that the image was tried with, by the files that are shipped."""
    monkeypatch.setenv("container", "oci")
    monkeypatch.setattr("os.geteuid", lambda: 10_001)
    missed = {"namespace": "unshare: Operation not permitted"}
    cure = report(Level("landlock", missed), step_isolation(Settings(tmp_path))).cure
    assert str(PROFILE.relative_to(HERE)) in (cure or "")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    cure = report(Level("uid", missed), step_isolation(Settings(tmp_path))).cure
    assert cure is not None
    assert "SYS_ADMIN --cap-add NET_ADMIN" in cure
