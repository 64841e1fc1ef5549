"""What `wfcore` offers to programs: names that come with a star, use cases that are all public."""

import ast
import inspect
import pydoc
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import date
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import pytest

import wfcore
import wfcore.sync
from wfcore.model.access import OPERATOR
from wfcore.model.json import JsonObject
from wfdocs import surface

SRC = surface.SRC
PAGES_AND_COMMANDS = ("adapters_http/handlers", "wfserver/commands", "wfserver/terminal")
ENGINE = ("adapters_runtime/engine",)
USECASES = "wfcore.usecases"
API = wfcore.DecisionSource.API

MOST_AT_IMPORT, MOST_AT_WORK = 250, 420
"""
The modules beyond a bare interpreter: by the names of an engine, and by its work. Decision 286.
"""
PACKAGES = ("wfcore", "adapters_runtime", "adapters_store", "wfserver")

HELLO: Any = {"name": "Hello", "steps": [{"name": "hi", "kind": "data", "value": 1}]}


def test_star_and_help_know_the_names(tmp_path: Path) -> None:
    """`from wfcore import *` gives each name, and `help(wfcore)` tells of them."""
    code = "from wfcore import *\nprint(*sorted(name for name in dir() if name[0] != '_'))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert run.stdout.split() == sorted(wfcore.__all__), run.stderr
    told = pydoc.plain(pydoc.render_doc(wfcore))
    assert [name for name in wfcore.__all__ if name not in told] == []


def test_importing_loads_two_modules(tmp_path: Path) -> None:
    """`import wfcore` costs a few milliseconds, since it loads itself and how it loads the rest."""
    code = """
import sys, importlib
had = set(sys.modules)
import wfcore
new = set(sys.modules) - had
print(len(new), *sorted(new - set(sys.stdlib_module_names) - {"collections.abc"}))
"""
    run = subprocess.run(
        [sys.executable, "-I", "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    number, *ours = run.stdout.split()
    assert ours == ["wfcore", "wfcore._exports"], run.stderr
    assert int(number) < 20


LOADED = """
import asyncio, sys
had = set({bare})
from wfcore import Engine, FunctionRunner, in_memory
print(*sorted(set(sys.modules) - had))
services = in_memory()
async def work():
    async with Engine(services, FunctionRunner()):
        print(*sorted(set(sys.modules) - had))
        built = set(sys.modules)
        await asyncio.sleep(0)
    print(*sorted(set(sys.modules) - built))
asyncio.run(work())
"""


def test_an_engine_loads_no_part_that_it_can_do_without(tmp_path: Path) -> None:
    """
    The names of an engine load no adapter; an engine that is built has loaded its rules, and
    neither a server, a database, YAML nor keys; its start and its end load nothing more.
    """
    bare = subprocess.run(
        [sys.executable, "-I", "-c", "import sys; print(list(sys.modules))"],
        capture_output=True,
        text=True,
    ).stdout
    code = LOADED.format(bare=bare)
    run = subprocess.run(
        [sys.executable, "-I", "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert run.returncode == 0, run.stderr
    named, built, later = (line.split() for line in run.stdout.splitlines())
    assert len(named) <= MOST_AT_IMPORT
    assert {name.rpartition(".")[0] for name in named if name.startswith("adapters_")} <= {
        "",
        "adapters_runtime",
        "adapters_runtime.engine",
    }
    others = {name.partition(".")[0] for name in built} - set(sys.stdlib_module_names)
    assert others == {"attr", "attrs", *PACKAGES}
    assert not {"wfserver.compose", "wfserver.settings.record", "wfcore.testing"} & set(built)
    assert len(built) <= MOST_AT_WORK
    assert later == []


def used(*folders: str) -> Iterator[tuple[str, str]]:
    """The functions of use cases that files below *folders* use: module and name."""
    for path in (path for folder in folders for path in (SRC / folder).rglob("*.py")):
        tree = ast.parse(path.read_text())
        modules: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith(USECASES):
                for one in node.names:
                    module = f"{node.module}.{one.name}"
                    if (SRC / module.replace(".", "/")).with_suffix(".py").exists():
                        modules[one.asname or one.name] = module
                    else:
                        yield str(node.module), one.name
        for node in ast.walk(tree):
            match node:
                case ast.Attribute(value=ast.Name(id=name)) if name in modules:
                    yield modules[name], node.attr


PUBLIC = {
    name: getattr(module, name)
    for module in map(import_module, surface.GROUPS)
    for name in module.__all__
}
"""The public names of the core and their values."""

OPERATIONS = "wfcore/usecases/administration"
"""What commands perform; these use the use cases."""


def test_whatever_a_page_or_a_command_can_do_is_public() -> None:
    """Every use case behind a handler, a command or a loop of the engine can be imported."""
    found = {
        (module, name)
        for module, name in used(*PAGES_AND_COMMANDS, *ENGINE, OPERATIONS)
        if OPERATIONS not in module.replace(".", "/")
    }
    waiting = {
        name
        for module, name in found
        if isinstance(surface.definitions(module).get(name), ast.AsyncFunctionDef)
    }
    assert len(waiting) > 50
    assert sorted(waiting - set(PUBLIC)) == []


def test_json_at_finds_and_names_what_is_not_there() -> None:
    """Values deep in an output can be used without a cast; what is missing is named."""
    output: wfcore.Json = {"rows": [{"amount": 20}]}
    doubled: int = 2 * wfcore.json_at(output, "rows", 0, "amount")
    assert doubled == 40
    assert wfcore.json_at("text") == "text"
    for path in (("rows", 1), ("rows", "0"), ("rows", 0, 0), ("none", 1), ("rows", 0, "why")):
        with pytest.raises(wfcore.InvalidInput, match="there is nothing at this place"):
            wfcore.json_at(output, *path)


USE_CASES = {
    name: inspect.signature(found).parameters
    for name, found in PUBLIC.items()
    if inspect.isfunction(found) and found.__module__.startswith(USECASES)
}


def test_the_page_of_embedders_names_every_use_case() -> None:
    """Each public function of the use cases is found in docs/embedding.md."""
    page = (surface.SRC.parent / "docs" / "embedding.md").read_text()
    assert len(USE_CASES) > 100
    assert [name for name in USE_CASES if f"`{name}`" not in page] == []


@pytest.mark.parametrize("name", USE_CASES)
def test_an_argument_of_another_class_is_named(name: str) -> None:
    """A use case says which argument is not what its annotation says, before it does anything."""
    for wrong, parameter in USE_CASES[name].items():
        is_json = parameter.annotation in (JsonObject, Mapping[str, object])
        error = wfcore.InvalidInput if is_json else TypeError
        says = f"{wrong}: must be a mapping" if is_json else f"{name}: {wrong} must be of type"
        with pytest.raises(error, match=f"^{says} .*, not object"):
            PUBLIC[name](**{wrong: object()})


async def test_an_error_says_what_would_make_the_right_argument() -> None:
    """Mappings become definitions, accounts become principals; words are no enumerations."""
    services = wfcore.in_memory()
    ann = await wfcore.ensure_account(services, "ann@example.org")
    given: Any = HELLO
    with pytest.raises(TypeError, match=r"not dict; read_definition makes one"):
        await wfcore.apply_workflow(services, ann.id, given)
    given = ann
    with pytest.raises(TypeError, match=r"who must be .*, not Account; Principal\(account\) is"):
        await wfcore.start_execution(services, given, "wf_1", {})
    given = ["executions:read"]
    with pytest.raises(TypeError, match=r"must be of type Collection\[Scope\], not list of str"):
        await wfcore.accounts.create_key(services, ann.id, "a key", given)
    cure = "read_definition takes a mapping"
    with pytest.raises(TypeError, match=rf"text must be .*, not dict; {cure}"):
        wfcore.read_definition_json(given := HELLO)
    with pytest.raises(TypeError, match=r"text must be of type str \| bytes, not dict"):
        wfcore.definition_from_yaml(given)
    given = None
    for on_sqlite in (wfcore.on_sqlite, wfcore.sync.on_sqlite):
        with pytest.raises(TypeError, match=r"folder must be of type str \| Path, not NoneType"):
            on_sqlite(given)
    given = "pro"
    with pytest.raises(TypeError, match=r"plan must be of type Tier \| None, not str"):
        await wfcore.accounts.set_account(services, OPERATOR, ann.id, plan=given)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: wfcore.Decide("a", "approve", API), "decision.decision must be .*, not str"),
        (lambda: wfcore.Decide("a", wfcore.Approve, API), "decision.decision must be .*, not type"),
        (
            lambda: wfcore.Decide("a", wfcore.Approve([1]), API),
            r"decision.edited must be of type Mapping\[str, object\] \| None, not list of int",
        ),
        (lambda: wfcore.Decide("a", wfcore.Reject(), API, comment=5), "decision.comment must be"),
    ],
)
async def test_a_wrong_field_of_an_argument_is_named(wrong: Any, says: str) -> None:
    """A decision that is none is refused as such, never as one that came too late."""
    services = wfcore.in_memory()
    ann = wfcore.Principal(await wfcore.ensure_account(services, "ann@example.org"))
    with pytest.raises(TypeError, match=says):
        await wfcore.decide_approval(services, ann, wrong())


async def test_what_was_not_awaited_is_named() -> None:
    """The likeliest mistake of all has an error of its own."""
    services = wfcore.in_memory()
    account: Any = wfcore.ensure_account(services, "ann@example.org")
    with pytest.raises(TypeError, match=r"who\.account must be of type Account, not .*not awaited"):
        await wfcore.list_executions(services, wfcore.Principal(account), wfcore.PageRequest())
    account.close()


async def test_half_a_character_is_refused() -> None:
    """What UTF-8 cannot hold is refused where it comes in, at any depth. VM-7."""
    services = wfcore.in_memory()
    ann = wfcore.Principal(await wfcore.ensure_account(services, "ann@example.org"))
    asked = wfcore.Decide("a", wfcore.Approve(), API, comment="caf\udce9")
    with pytest.raises(wfcore.InvalidInput, match="comment: half a surrogate"):
        await wfcore.decide_approval(services, ann, asked)


def test_a_rule_refuses_what_cannot_be_meant() -> None:
    """No plan, a text in the place of bytes, and seconds in the place of milliseconds."""
    given: Any = None
    with pytest.raises(TypeError, match=r"windows: plan must be of type Tier, not NoneType"):
        wfcore.windows(given, wfcore.EpochMs(0))
    given = "x"
    with pytest.raises(TypeError, match=r"sign: body must be of type bytes, not str"):
        wfcore.sign("s", given)
    for seconds in (10**9, 1_700_000_000, 10**10 - 1):
        with pytest.raises(wfcore.InvalidInput, match="now: is a time in seconds"):
            wfcore.windows(wfcore.accounts.Tier.PRO, wfcore.EpochMs(seconds))
    for meant in (0, 10**9 - 1, 10**10):
        assert wfcore.windows(wfcore.accounts.Tier.PRO, wfcore.EpochMs(meant))


def test_positional_arguments_and_missing_parts_are_named() -> None:
    """Parts are named; one that is None is no part."""
    given: Any = "x"
    with pytest.raises(TypeError, match="takes 0 positional arguments"):
        wfcore.in_memory(given)
    with pytest.raises(TypeError, match="in_memory: store must be of type Store, not NoneType"):
        wfcore.in_memory(store=cast("Any", None))
    with pytest.raises(TypeError, match="a runner of steps"):
        wfcore.Engine(wfcore.in_memory(), given)


@pytest.mark.parametrize("wrong", [0, -1, "x"])
def test_numbers_that_would_do_nothing_are_refused(wrong: Any) -> None:
    """A page of no rows, a server of no places, a pause of no time."""
    for name in ("page", "size"):
        with pytest.raises(wfcore.InvalidInput, match=f"^{name}: must be a number, at least 1"):
            wfcore.PageRequest(**{name: wrong})
    for name in ("places", "poll_ms", "sweep_ms"):
        with pytest.raises(wfcore.InvalidInput, match=f"^{name}: must be a number, at least 1"):
            wfcore.Policy(**{name: wrong})


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        ({"on": {"day": date(2026, 1, 2)}}, "inputs.on.day: must be JSON, not date"),
        ({"amount": Decimal("1.20")}, "inputs.amount: must be JSON, not Decimal"),
        ({"rate": float("nan")}, "inputs.rate: is no number that JSON can hold"),
        ({7: "seven"}, "inputs: the key 7 must be text"),
    ],
)
async def test_inputs_that_are_no_json_are_refused(inputs: Any, says: str) -> None:
    """A store would keep something else, or fail: the error names the place."""
    services = wfcore.in_memory()
    ann = await wfcore.ensure_account(services, "ann@example.org")
    hello = await wfcore.apply_workflow(services, ann.id, wfcore.read_definition(HELLO))
    with pytest.raises(wfcore.InvalidInput) as refused:
        await wfcore.start_execution(services, wfcore.Principal(ann), hello.id, inputs)
    assert str(refused.value) == says


@pytest.mark.parametrize(
    ("decision", "says"),
    [
        (
            wfcore.Approve(edited={"rows": [{"day": date(2026, 1, 2)}]}),
            "decision.decision.edited.rows[0].day: must be JSON, not date",
        ),
        (
            wfcore.Approve(answers={"amount": Decimal("1.20")}),
            "decision.decision.answers.amount: must be JSON, not Decimal",
        ),
    ],
)
async def test_rows_and_answers_that_are_no_json_are_refused(
    decision: wfcore.Approve, says: str
) -> None:
    """A program may pass mappings of any values; a value that is not JSON is named."""
    services = wfcore.in_memory()
    ann = wfcore.Principal(await wfcore.ensure_account(services, "ann@example.org"))
    with pytest.raises(wfcore.InvalidInput) as refused:
        await wfcore.decide_approval(services, ann, wfcore.Decide("a", decision, API))
    assert str(refused.value) == says
