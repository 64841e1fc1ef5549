"""How commands are called, and what they say when they are called wrongly."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import click
import pytest

from wfcore.installed import install
from wfserver.cli import COMMANDS, cli

from .conftest import Call, environment, program

HEAVY = (
    "attr",
    "starlette",
    "uvicorn",
    "rich",
    "minijinja",
    "orjson",
    "argon2",
    "asyncio",
    "sqlite3",
)


def _cpu_s(*arguments: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], capture_output=True, check=True, env=environment())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_help_is_instant() -> None:
    """`wfcore --help` costs little more CPU than loading click, which draws it: some 100 ms."""
    given, needed = ("-m", "wfserver", "--help"), ("-c", "import click")
    took = [(_cpu_s(*given), _cpu_s(*needed)) for _ in range(10)]
    assert min(one for one, _ in took) <= 2 * min(one for _, one in took)


@pytest.mark.parametrize(
    ("to", "status", "says"),
    [(">/dev/full", 1, "error: No space left on device"), (">&-", 0, ""), (">&- 2>&-", 0, "")],
)
def test_streams_that_take_nothing_leave_no_traceback(to: str, status: int, says: str) -> None:
    """A full device is named; a stream that the caller closed is no mistake."""
    ended = subprocess.run(
        ["sh", "-c", f'"$0" -m wfserver states approval {to}', sys.executable],
        capture_output=True,
        text=True,
        env=environment(),
    )
    assert ended.returncode == status
    assert ended.stderr.startswith(says)
    assert "Traceback" not in ended.stderr


def test_words_that_are_not_utf8_are_refused(wfcore: Call) -> None:
    """Nothing is stored that no answer in JSON could say again: exit status 2."""
    said = wfcore("approval", "approve", "appr_1", "--comment", os.fsdecode(b"caf\xe9"))
    assert said.status == 2
    assert "'caf\\udce9' is not UTF-8" in said.err


def _imported(*arguments: str) -> set[str]:
    """The modules that a call of the command line loads."""
    ended = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "wfserver", *arguments],
        capture_output=True,
        text=True,
        env=environment(),
    )
    return {line.rpartition("|")[2].strip() for line in ended.stderr.splitlines()}


def test_help_imports_nothing_heavy() -> None:
    """`wfcore --help` imports neither the server nor what draws tables."""
    imported = _imported("--help")
    assert "click" in imported
    assert not imported & set(HEAVY)


def test_a_list_imports_only_what_reads_the_store(call: Call, tmp_path: Path) -> None:
    """`wfcore execution list` imports neither YAML nor what serves, counts or runs steps."""
    data = str(tmp_path / "data")
    assert call("account", "create", "ann@example.org", "--data", data).status == 0
    imported = _imported("execution", "list", "--data", data)
    assert "adapters_store.sqlite.store" in imported
    unwanted = "yaml", "prometheus_client", "http.server", "adapters_runtime.sandbox.client"
    assert not imported & {*unwanted, "wfserver.definitions.read", "wfserver.doctor.providers"}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_of_a_group_names_all_that_it_does(name: str) -> None:
    """The table is written by hand, so that help imports nothing: no command is forgotten in it."""
    command = cli.get_command(click.Context(cli), name)
    if isinstance(command, click.Group):
        told = COMMANDS[name].rpartition(": ")[2].removesuffix(".").split(", ")
        assert sorted(told) == sorted(command.commands)


@pytest.mark.parametrize("command", ["up", "try", "run", "doctor", "webhook create", "restore"])
def test_every_command_explains_itself(call: Call, command: str) -> None:
    """`--help` of a command exits 0 and names its options."""
    said = call(*command.split(), "--help")
    assert said.status == 0
    assert "--json" in said.out


@pytest.mark.parametrize("missing", ["click", "starlette"], ids=lambda name: f"without {name}")
def test_without_the_extra_it_says_what_to_install(missing: str, tmp_path: Path) -> None:
    """Where the server's packages are missing, one line says how to install them."""
    called = "'wfcore', 'serve'" if missing == "starlette" else "'wfcore'"
    code = f"import sys; sys.modules[{missing!r}] = None; sys.argv = [{called}]\n"
    code += "from wfserver.__main__ import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=environment(),
        cwd=tmp_path,
    )
    assert ended.returncode == 1
    assert install("server") in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["acount", "list"], "did you mean account?"),
        (["account", "create"], "EMAIL"),
        (["account", "create", "a@b.org", "--plan", "GOLD"], "GOLD"),
        (["key", "create", "--account", "a@b.org", "--name", "n"], "--scope"),
        (["key", "rotate", "k", "--overlap", "soon"], "duration"),
        (["execution", "start", "w", "-i", "novalue"], "name=value"),
        (["webhook", "create", "--workflow", "w", "--name", "n"], "exactly one of --key"),
        (["audit", "--since", "yesterday"], "1h"),
        (["account", "set", "a@b.org"], "--plan"),
    ],
)
def test_a_wrong_call_is_named_in_one_line(call: Call, arguments: list[str], named: str) -> None:
    """A usage error exits 2 with one line on stderr that names it."""
    said = call(*arguments)
    assert (said.status, said.out) == (2, "")
    assert named in said.err
    assert said.err.startswith("error: ")
    assert len(said.err.splitlines()) == 1


def test_nothing_to_do_shows_the_help(call: Call) -> None:
    """`wfcore` alone shows its help on stderr and exits 2."""
    said = call()
    assert (said.status, said.out) == (2, "")
    assert "doctor" in said.err


def test_json_stands_before_or_after(wfcore: Call) -> None:
    """`--json` works in front of the command, behind its noun and at the end."""
    documents = [
        wfcore("--json", "account", "list").json,
        wfcore("account", "--json", "list").json,
        wfcore("account", "list", "--json").json,
    ]
    assert documents[0]["total"] == 1
    assert documents[0] == documents[1] == documents[2]


@pytest.mark.parametrize(
    ("arguments", "status"),
    [(["account", "create", "nobody"], 1), (["account", "create"], 2), (["nonsense"], 2)],
)
def test_errors_are_json_where_json_was_asked_for(
    wfcore: Call, arguments: list[str], status: int
) -> None:
    """With `--json` a failure is `{"error": ...}` on stdout, and its text still on stderr."""
    said = wfcore("--json", *arguments)
    assert said.status == status
    assert said.err == f"error: {said.json['error']}\n"


def test_a_missing_folder_is_not_made_by_looking(call: Call, data: object) -> None:
    """A list on a folder that is not there fails, names it and the cure, and makes nothing."""
    said = call("--data", str(data), "workflow", "list")
    assert said.status == 1
    assert str(data) in said.err
    assert "wfcore up" in said.err
    assert not os.path.exists(str(data))


@pytest.mark.parametrize("url", ["mongodb://x", "sqlite:///", "nonsense"])
def test_an_unknown_store_is_refused(call: Call, url: str) -> None:
    """A store URL that names no store is an error that says which ones there are."""
    said = call("--store", url, "account", "list")
    assert said.status == 2
    assert said.err.startswith("error: --store: ")
    assert "sqlite:///" in said.err


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://bob:pa/CANARY@127.0.0.1:1/db",
        "postgresql://bob:CANARY#x@127.0.0.1:1/db",
        "postgresql://[bob:CANARY@127.0.0.1:1/db",
        "postgresql://bob:CANARY@127.0.0.1:65536/db",
        "postgresq://bob:CANARY@127.0.0.1/db",
    ],
)
def test_a_store_that_cannot_be_read_is_refused_without_its_password(call: Call, url: str) -> None:
    """A password with characters of URLs is percent-encoded; what was given is not repeated."""
    for command in (("account", "list"), ("doctor",)):
        said = call("--store", url, *command)
        assert said.status in (1, 2), said.err
        assert "Traceback" not in said.err
        assert "CANARY" not in said.err + said.out


def test_a_foreign_file_is_refused(call: Call, tmp_path: object) -> None:
    """A store that is no database of ours is refused by name, and left as it is."""
    path = f"{tmp_path}/foreign.db"
    with open(path, "w") as foreign:
        foreign.write("these are not the rows you look for" * 100)
    said = call("--data", f"{tmp_path}/d", "--store", f"sqlite:///{path}", "account", "list")
    assert said.status == 1
    assert path in said.err
    assert "Traceback" not in said.err
    with open(path) as foreign:
        assert foreign.read().startswith("these are not")


def test_the_program_is_a_process_too() -> None:
    """`python -m wfserver` prints its version and exits 0."""
    said = program("--version")
    assert said.status == 0
    assert said.out.startswith("wfcore ")


def test_an_unknown_setting_is_exit_status_2(wfcore: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command that reads settings says which, and what was meant; help needs none."""
    monkeypatch.setenv("WFCORE_CONCURENCY", "4")
    assert wfcore("--help").status == 0
    refused = wfcore("account", "list")
    assert refused.status == 2
    assert "WFCORE_CONCURENCY: there is no such setting; did you mean WFCORE_CON" in refused.err
