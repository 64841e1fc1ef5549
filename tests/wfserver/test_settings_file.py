"""Settings from a file, and `wfcore settings`, which says where each one came from."""

import os
from pathlib import Path
from typing import Any

import pytest

from wfcore.errors import InvalidInput
from wfserver.settings.isolation import step_isolation
from wfserver.settings.record import settings_from, take_environment
from wfserver.settings.table import SETTINGS

from .conftest import Call, Said

MANY = """
WFCORE_PORT = 9000
WFCORE_CONCURRENCY = "16"
WFCORE_CONSOLE = false
WFCORE_SMTP_URL = "smtps://mailer:hunter2@mail.example.org"
WFCORE_MAIL_FROM = "flows@example.org"
WFCORE_NOTIFY_OPS = "slack+https://hooks.example.org/T0/hunter2"
OPENAI_API_KEY = "sk-hunter2"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "wfcore.toml"
    path.write_text(MANY)
    path.chmod(0o640)
    return path


def _set(said: Said) -> dict[str, tuple[Any, str]]:
    assert said.status == 0, said.err
    return {one["name"]: (one["value"], one["source"]) for one in said.json["items"] if one["set"]}


def test_the_environment_wins_over_the_file(file: Path) -> None:
    """Numbers and switches are written as TOML has them, or as text."""
    environment = {"WFCORE_SETTINGS": str(file), "WFCORE_CONCURRENCY": "3", "WFCORE_LEASE": "1m"}
    settings = settings_from(environment, port=9001)
    assert (settings.port, settings.policy.places, settings.console) == (9001, 3, False)
    assert (settings.policy.lease_ms, settings.notices.sender) == (60_000, "flows@example.org")
    assert settings_from({"WFCORE_SETTINGS": str(file)}).port == 9000
    assert settings.providers["openai"].api_key == "sk-hunter2"


def test_what_is_in_the_file_stays_out_of_the_environment(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No process that is started later inherits it."""
    monkeypatch.setenv("WFCORE_SETTINGS", str(file))
    assert take_environment()["OPENAI_API_KEY"] == "sk-hunter2"
    assert "hunter2" not in str(dict(os.environ))


def test_where_each_setting_came_from(
    call: Call, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every setting is listed; no secret is shown, wherever it stands."""
    monkeypatch.setenv("WFCORE_PORT", "9002")
    said = call("--settings", str(file), "settings", "--data", "here", "--json")
    assert _set(said) == {
        "WFCORE_SETTINGS": (str(file), "--settings"),
        "WFCORE_DATA": ("here", "--data"),
        "WFCORE_PORT": ("9002", "environment"),
        "WFCORE_CONCURRENCY": ("16", "file"),
        "WFCORE_CONSOLE": ("0", "file"),
        "WFCORE_SMTP_URL": (None, "file"),
        "WFCORE_MAIL_FROM": ("flows@example.org", "file"),
        "WFCORE_NOTIFY_OPS": (None, "file"),
        "OPENAI_API_KEY": (None, "file"),
    }
    assert {one.name for one in SETTINGS} <= {one["name"] for one in said.json["items"]}
    table = call("settings", "--settings", str(file))
    assert "hunter2" not in said.out + table.out
    assert "WFCORE_LEASE" in table.out


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("WFCORE_PORT: 9000", "is not TOML"),
        ("[server]\nport = 1", "says server, which is no setting"),
        ("PATH = 'x'", "says PATH, which is no setting"),
        ("WFCORE_SETTINGS = 'other.toml'", "says WFCORE_SETTINGS, which is no setting"),
        ("WFCORE_PORT = 1.5", "WFCORE_PORT: must be a text, a whole number, true or false"),
        ("WFCORE_OPERATORS = ['a@b']", "WFCORE_OPERATORS: must be a text, a whole number"),
        ("WFCORE_PORTT = 1", "WFCORE_PORTT: there is no such setting; did you mean WFCORE_PORT?"),
    ],
)
def test_what_no_setting_can_be_is_refused(
    call: Call, tmp_path: Path, text: str, told: str
) -> None:
    """A mistake is named with its file, never passed over."""
    path = tmp_path / "odd.toml"
    path.write_text(text)
    said = call("settings", "--settings", str(path))
    assert said.status != 0
    assert told in said.err


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    """A typo in its name would leave every default in force."""
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff")
    for path, told in ((tmp_path / "none", "No such file"), (binary, "is not UTF-8")):
        with pytest.raises(InvalidInput, match=told):
            settings_from({"WFCORE_SETTINGS": str(path)})


def test_a_secret_that_everybody_may_read_is_refused(file: Path) -> None:
    """With the command that mends it; what is no secret may be read."""
    file.chmod(0o644)
    with pytest.raises(InvalidInput, match=r"holds WFCORE_SMTP_URL.*chmod o-r"):
        settings_from({"WFCORE_SETTINGS": str(file)})
    file.write_text("WFCORE_PORT = 9000")
    assert settings_from({"WFCORE_SETTINGS": str(file)}).port == 9000


def test_steps_see_neither_the_file_nor_the_keys(file: Path, tmp_path: Path) -> None:
    """Wherever they lie: a folder that steps may read can hold them."""
    keys = tmp_path / "elsewhere.key"
    settings = settings_from({"WFCORE_SETTINGS": str(file), "WFCORE_SEAL_KEY_FILE": str(keys)})
    assert {str(file.resolve()), str(keys.resolve())} <= set(step_isolation(settings).hidden)


def test_origins_are_origins() -> None:
    """A path or a bare name would allow nothing, and be noticed late."""
    given = settings_from({"WFCORE_CORS_ORIGINS": "https://app.example.org, http://localhost:3000"})
    assert given.cors_origins == ("https://app.example.org", "http://localhost:3000")
    assert settings_from({"WFCORE_CORS_ORIGINS": "*"}).cors_origins == ("*",)
    for odd in (
        "app.example.org",
        "https://app.example.org/",
        "https://App.example.org",
        "http://",
    ):
        with pytest.raises(InvalidInput, match="is no origin"):
            settings_from({"WFCORE_CORS_ORIGINS": odd})


def test_all_wrong_settings_are_named_at_once(call: Call, tmp_path: Path) -> None:
    """Each on a line of its own; also one that an option of the command would replace."""
    file = tmp_path / "wrong.toml"
    file.write_text('WFCORE_PORT = "abc"\nWFCORE_LEASE = "soon"\nWFCORE_CONSOLE = "maybe"\n')
    said = call("--settings", str(file), "serve", "--port", "8999")
    assert said.status == 2
    named = {line.removeprefix("error: ").split(":")[0] for line in said.err.splitlines()}
    assert named == {"WFCORE_PORT", "WFCORE_LEASE", "WFCORE_CONSOLE"}


def test_whatever_is_wrong_with_a_setting_is_one_exit_status(call: Call, tmp_path: Path) -> None:
    """A name that there is none of, a value that cannot be, and a file that cannot be read: 2."""
    file = tmp_path / "wrong.toml"
    for text in ("WFCORE_PROT = 1", "WFCORE_PORT = 0", "PORT = 1", "WFCORE_PORT ="):
        file.write_text(text)
        assert call("--settings", str(file), "settings").status == 2


def test_accounts_without_a_plan_get_the_default(call: Call, tmp_path: Path) -> None:
    """WFCORE_DEFAULT_PLAN; else FREE, or ENTERPRISE where `wfcore up` made the data folder."""
    data = tmp_path / "data"

    def plan(name: str, *more: str) -> str:
        made = call("--data", str(data), "account", "create", f"{name}@x.example", "--json", *more)
        return str(made.json["plan"])

    assert plan("a") == "FREE"
    (data / "first.key").write_text("wfk_1_2\n")
    assert (plan("b"), plan("c", "--plan", "PRO")) == ("ENTERPRISE", "PRO")
    assert settings_from({"WFCORE_DATA": str(data)}).policy.default_plan == "ENTERPRISE"
    given = settings_from({"WFCORE_DATA": str(data), "WFCORE_DEFAULT_PLAN": "TEAM"})
    assert given.policy.default_plan == "TEAM"
    with pytest.raises(InvalidInput, match="FREE, PRO, TEAM, ENTERPRISE"):
        settings_from({"WFCORE_DEFAULT_PLAN": "GOLD"})
