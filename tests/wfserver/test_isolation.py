"""What a server says to its steps' isolation, and what it says of it."""

import os
from pathlib import Path

import pytest

from adapters_runtime.sandbox.isolation.config import LADDER
from adapters_runtime.sandbox.isolation_level import Isolation, Level
from wfserver.doctor.isolation import HOLDS, LACKS, report
from wfserver.settings.isolation import step_isolation
from wfserver.settings.record import Settings, settings_from


def test_the_data_folder_is_hidden_and_the_own_port_closed(tmp_path: Path) -> None:
    """No step sees the data folder, by whatever name it was given, nor reaches the server."""
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to("data")
    said = step_isolation(Settings(tmp_path / "link"), 8000)
    assert said.hidden == (f"{tmp_path}/data", f"{tmp_path}/data/artifacts")
    assert said.closed == (("", 8000),)


@pytest.mark.parametrize(
    ("url", "closed"),
    [
        (None, ()),
        ("sqlite:///tmp/x.db", ()),
        ("memory:", ()),
        ("postgresql://u:p@192.0.2.7:6000/wf", (("192.0.2.7", 6000),)),
        ("postgresql://192.0.2.7/wf", (("192.0.2.7", 5432),)),
        ("postgresql://[2001:db8::1]/wf", (("2001:db8::1", 5432),)),
        ("postgresql://127.0.0.1/wf", (("127.0.0.1", 5432),)),
        ("postgresql:///wf", (("", 5432),)),
        ("postgresql:///wf?host=/run/pg", ()),
        ("postgresql:///wf?host=192.0.2.7&port=6000", (("192.0.2.7", 6000),)),
        (
            "postgresql://u:p@192.0.2.7,192.0.2.8:6000/wf",
            (("192.0.2.7", 5432), ("192.0.2.8", 6000)),
        ),
        (
            "postgres:///wf?host=192.0.2.7,192.0.2.8&port=1,2",
            (("192.0.2.7", 1), ("192.0.2.8", 2)),
        ),
        ("postgresql://name.invalid/wf", ()),
    ],
)
def test_the_store_is_closed_too(url: str | None, closed: object) -> None:
    """A store is closed to steps by every address of its name, one that has none by all here."""
    assert step_isolation(Settings(Path("/d"), url)).closed == closed


def test_the_way_past_a_pooler_is_closed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both servers are the store; one that the URL leaves out is where the environment says."""
    monkeypatch.setenv("PGHOST", "192.0.2.7")
    monkeypatch.setenv("PGPORT", "6000")
    store, direct = "postgresql:///wf", "postgresql://192.0.2.8/wf"
    said = step_isolation(Settings(Path("/d"), store, direct=direct))
    assert said.closed == (("192.0.2.7", 6000), ("192.0.2.8", 6000))


def test_each_server_of_the_queue_is_closed_too() -> None:
    """Several hosts and an IPv6 address in one URL; what no URL is fails where it is opened."""
    queue = "tls://u:p@192.0.2.7,[2001:db8::1]:4111?name=a"
    assert step_isolation(Settings(Path("/d"), engine=queue)).closed == (
        ("192.0.2.7", 4222),
        ("2001:db8::1", 4111),
    )
    assert step_isolation(Settings(Path("/d"), engine="tls://[2001")).closed == ()


def test_no_step_takes_a_port_that_a_setting_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Its own, the store's, the queue's, the relay's, a model's, a room's, a collector's; by the
    custom of the scheme where none is named, and wherever it leads. CS-20.
    """
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector.example:4444/v1")
    monkeypatch.setenv("HTTPS_PROXY", "http://u:p@proxy.example:3128")
    environment = {
        "WFCORE_STORE": "postgresql://a.example:6000,b.example/wf",
        "WFCORE_ENGINE": "tls://u:p@q.example:4111,r.example",
        "WFCORE_SMTP_URL": "smtp://user:password@relay.example",
        "WFCORE_MAIL_FROM": "wf@example.org",
        "WFCORE_NOTIFY_ROOM": "https://chat.example:8443/hook",
        "OPENAI_API_KEY": "k",
        "OPENAI_BASE_URL": "http://127.0.0.1:11434/v1",
        "WFCORE_PUBLIC_URL": "https://wf.example:9443",
        "WFCORE_PORT": "8123",
    }
    taken = step_isolation(settings_from(environment), 8999).reserved
    named = {4444, 3128, 6000, 5432, 4111, 4222, 587, 25, 8443, 11434, 9443, 8123, 8999}
    assert named - set(taken) == set()


def test_no_step_takes_the_port_of_an_index_or_registry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever takes it while it restarts is told its password, and hands out packages. CS-20."""
    texts = {
        ".npmrc": "registry=http://u:p@127.0.0.1:4873/\n@own:registry=${OWN}/npm/\n",
        ".config/pip/pip.conf": "[global]\nindex-url = http://u:p@127.0.0.1:3141/simple\n",
        ".pip/pip.conf": "[install]\nextra-index-url =\n  http://127.0.0.1:3142/simple\n",
        "own.conf": "[global]\nproxy = http://127.0.0.1:3143\n",
        "own.npmrc": "https-proxy=http://127.0.0.1:3144\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("OWN", "http://127.0.0.1:4874")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "own.conf"))
    monkeypatch.setenv("npm_config_globalconfig", str(tmp_path / "own.npmrc"))
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:3145/simple")
    taken = set(step_isolation(Settings(tmp_path / "data"), 8999).reserved)
    assert {4873, 4874, 3141, 3142, 3143, 3144, 3145} - taken == set()


@pytest.mark.parametrize("level", LADDER)
def test_a_report_says_what_is_missing_and_what_to_do(level: str) -> None:
    """Every level says what it holds; all but the best what they lack, and how to get more."""
    missed = dict.fromkeys(LADDER[: LADDER.index(level)], "no such thing here")
    said = report(Level(level, missed), Isolation())
    assert (said.holds, said.lacks) == (HOLDS[level], LACKS[level])
    assert bool(said.lacks) == bool(said.cure) == bool(said.missed) == (level != LADDER[0])
    assert said.refused is Level(level, missed).is_below("uid" if os.geteuid() == 0 else "landlock")
    assert ("refused" in said.summary) is said.refused
