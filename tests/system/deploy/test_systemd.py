"""The units that are shipped: systemd's own judgement, and what they execute, executed."""

import asyncio
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import httpx

from tests.support.distribution import program
from tests.support.postgres_server import emptied
from tests.wfserver.conftest import environment
from tests.wfserver.conftest import program as wfcore
from wfserver.settings.record import Settings

UNITS = Path(__file__).parents[3] / "deploy" / "systemd"
WORKER = "wfcore.service.d/worker.conf"
DAY_S = 86_400
VENV = "/opt/wfcore/.venv/bin/wfcore"


def _said(name: str) -> list[tuple[str, str]]:
    """Key and value of each line."""
    return re.findall(r"^(\w+)=(.*)$", (UNITS / name).read_text(), re.M)


def test_systemd_reads_the_units(tmp_path: Path) -> None:
    """Every line of every unit is known to it, with what is dropped in."""
    tool = program("systemd-analyze", "systemd")
    shutil.copytree(UNITS, tmp_path, dirs_exist_ok=True)
    units = [path for path in sorted(tmp_path.iterdir()) if path.is_file()]
    for path in units:
        path.write_text(path.read_text().replace(VENV, "/bin/true"))
    ran = subprocess.run([tool, "verify", *units], capture_output=True, text=True, timeout=60)
    lines = (ran.stdout + ran.stderr).splitlines()  # also of other units of this machine
    ours = [line for line in lines if any(unit.name in line for unit in units)]
    assert (ran.returncode, ours) == (0, [])


def test_sigterm_is_for_the_server_alone(tmp_path: Path) -> None:
    """With time for its drain."""
    said = dict(_said("wfcore.service"))
    assert said["KillMode"] == "mixed"
    assert int(said["TimeoutStopSec"]) * 1_000 >= Settings(tmp_path).drain_ms + 5_000


def _executed(data: Path, backups: Path) -> None:
    """What the unit of backups executes, with these folders."""
    environ = dict(pair.split("=", 1) for key, pair in _said(BACKUP) if key == "Environment")
    for key, line in _said(BACKUP):
        if not key.startswith("Exec"):
            continue
        words = shlex.split(line.replace("$$", "$").replace("%%", "%"))
        for there, here in (
            ("/var/lib/wfcore-backup", str(backups)),
            ("/var/lib/wfcore", str(data)),
            ("${KEEP}", environ["KEEP"]),
        ):
            words = [word.replace(there, here) for word in words]
        if words[0] == VENV:
            words[:1] = [sys.executable, "-m", "wfserver"]
        subprocess.run(words, check=True, capture_output=True, env=environment(), timeout=60)


BACKUP = "wfcore-backup.service"


def test_a_backup_is_kept_for_days_and_restored(tmp_path: Path) -> None:
    """The old ones go, a copy that broke off goes, and the new one is a whole service again."""
    data, backups, restored = tmp_path / "data", tmp_path / "backups", tmp_path / "restored"
    backups.mkdir()
    assert wfcore("--data", str(data), "account", "create", "ann@example.org").status == 0
    now = time.time()
    for name, days in (("wfcore-old.tar", 16), ("wfcore-kept.tar", 13), ("other.tar", 16)):
        (backups / name).touch()
        os.utime(backups / name, (now - days * DAY_S,) * 2)
    _executed(data, backups)
    names = {path.name for path in backups.iterdir()}
    (made,) = names - {"wfcore-kept.tar", "other.tar"}
    assert re.fullmatch(r"wfcore-\d{8}T\d{6}Z\.tar", made)
    assert (backups / made).stat().st_mode & 0o077 == 0
    assert wfcore("--data", str(restored), "restore", str(backups / made)).status == 0
    (restored / "seal.key").write_bytes((data / "seal.key").read_bytes())
    said = wfcore("--data", str(restored), "account", "list")
    assert "ann@example.org" in said.out


def test_a_worker_is_the_unit_with_what_is_dropped_in(database: str, tmp_path: Path) -> None:
    """
    The line that the unit executes, with the settings of the drop-in and of the file that it names:
    a server that runs steps of the shared store, and answers for its health alone.
    """
    data, shared = tmp_path / "data", tmp_path / "wfcore.toml"
    shared.write_text(f'WFCORE_STORE = "{asyncio.run(emptied(database))}"\n')
    shared.chmod(0o640)
    environ = dict(value.split("=", 1) for key, value in _said(WORKER) if key == "Environment")
    assert environ.pop("WFCORE_SETTINGS") == "/etc/wfcore.toml"
    line = dict(_said("wfcore.service"))["ExecStart"].replace("/var/lib/wfcore", str(data))
    program, *words = shlex.split(line)
    assert program == VENV
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "wfserver", *words, "--port", "0"],
            env=environment() | environ | {"WFCORE_SETTINGS": str(shared)},
            stdin=subprocess.DEVNULL,
            stderr=log,
        )
    try:
        url = _address(process, data)
        with httpx.Client(base_url=url, timeout=60) as http:
            assert http.get("/healthz").status_code == 200
            assert http.get("/api/v1/workflows").status_code == 404
            deadline = time.monotonic() + 60
            while 'wfcore_nodes{state="taking"} 1' not in http.get("/metrics").text:
                assert time.monotonic() < deadline
                time.sleep(0.1)
        process.terminate()
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()


def _address(process: "subprocess.Popen[bytes]", data: Path) -> str:
    """Where the server answers, once it does."""
    note, deadline = data / "server.json", time.monotonic() + 60
    while not note.exists():
        assert process.poll() is None, (data.parent / "log").read_text()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return str(json.loads(note.read_text())["url"])
