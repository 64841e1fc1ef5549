"""Packages that steps ask for: pinned names of the operator's index, and nothing else."""

import re
from typing import Any

import pytest
from attrs import evolve
from hypothesis import example, given
from hypothesis import strategies as st

from adapters_runtime.expressions.templates import MiniJinjaTemplates
from wfcore.errors import InvalidDefinition
from wfcore.model.workflow import (
    Branch,
    Case,
    CodeStep,
    Definition,
    DelayStep,
    Language,
    LoopStep,
    Needs,
    ParallelStep,
    SwitchStep,
)
from wfcore.rules.definition.check import check_definition
from wfcore.rules.definition.packages import needs_of, packages, replaced, requirement
from wfcore.rules.definition.values import Findings
from wfcore.testing import builders as make
from wfcore.testing.strategies.values import json_values
from wfcore.time import DurationMs


def checked(**fields: Any) -> CodeStep:
    step = {"name": "work", "kind": "code", "language": "python", "source": "1", **fields}
    document = {"name": "W", "steps": [step]}
    (found,) = check_definition(document, MiniJinjaTemplates().problems).steps
    assert isinstance(found, CodeStep)
    return found


def mistakes(**fields: Any) -> list[tuple[str, str]]:
    with pytest.raises(InvalidDefinition) as caught:
        checked(**fields)
    return [(problem.path, problem.message) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("requests==2.32.3", "requests==2.32.3"),
        ("  Foo_.Bar == 1.0 ", "foo-bar==1.0"),
        ("uvicorn[Standard, httptools]==0.30", "uvicorn[httptools,standard]==0.30"),
        ("x==1!2.0rc1.post2.dev3+local.7", "x==1!2.0rc1.post2.dev3+local.7"),
        ("x==1;python_version<'3.13'", "x==1 ; python_version<'3.13'"),
        (
            'x==1 ;  sys_platform == "linux"  and (os_name!="nt")',
            'x==1 ; sys_platform == "linux" and (os_name!="nt")',
        ),
    ],
)
def test_a_pinned_requirement_is_taken_in_its_normal_form(written: str, normal: str) -> None:
    """Names, extras, versions and markers as packaging knows them; the same is the same. PK-1."""
    assert checked(requirements=[written]).requirements == (normal,)
    assert checked(requirements=[normal]).requirements == (normal,)


UNPINNED = "is not pinned; write the version: name==1.2.3"
RANGE = "must be pinned to exactly one version: name==1.2.3"
OPTION = "is an option; only requirements go here, like name==1.2.3"
ADDRESS = "names an address; packages come from the operator's index, like name==1.2.3"
PATH = "is a path; packages come from the operator's index, like name==1.2.3"
OTHER = (
    "must be a pinned requirement: name==1.2.3, name[extra]==1.2.3, "
    "or with a marker: name==1.2.3; python_version < '3.13'"
)
REFUSED = [
    ("requests", UNPINNED),
    ("requests[socks]", UNPINNED),
    ("requests; python_version<'3'", UNPINNED),
    ("requests [a] ; x", UNPINNED),
    ("requests;\nx", UNPINNED),
    ("requests;" + "x" * 491, UNPINNED),
    ("requests>=2", RANGE),
    ("requests [a] <2", RANGE),
    ("requests==2 ,<3", RANGE),
    ("requests~=2.0", RANGE),
    ("requests!=2.0", RANGE),
    ("requests===2.0", RANGE),
    ("requests==2.*", RANGE),
    ("requests==2.0,<3", RANGE),
    ("-r other.txt", OPTION),
    ("--index-url=https://evil.example/x", OPTION),
    ("-e .", OPTION),
    ("https://evil.example/x-1.0.whl", ADDRESS),
    ("git+https://evil.example/x", ADDRESS),
    ("x @ https://evil.example/x.whl", ADDRESS),
    ("x[y] @ file:///etc/passwd", ADDRESS),
    ("x@1.0", ADDRESS),
    ("x [y]@1", ADDRESS),
    (".", PATH),
    ("./x", PATH),
    ("/srv/x-1.0-py3-none-any.whl", PATH),
    ("~/x", PATH),
    ("x-1.0.tar.gz", PATH),
    ("a\\b", PATH),
    ("X-1.0.ZIP", PATH),
    ("/srv/x", PATH),
    ("x.whl", PATH),
    ("x.tgz", PATH),
    ("requirements.txt", PATH),
    ("x==1 --hash=sha256:00", OTHER),
    ("x==1 --config-settings=a=b", OTHER),
    ("x==1 # comment", OTHER),
    ("x==1 ; $(reboot)", OTHER),
    ("x==1\n--pre", OTHER),
    ("x==${VERSION}", OTHER),
    ("", OTHER),
    ("x==" + "1" * 500, "is 503 characters long; at most 500"),
]


@pytest.mark.parametrize(("written", "says"), REFUSED)
def test_anything_else_is_refused_by_its_field(written: str, says: str) -> None:
    """An option, an address, a path, a range: each has its own words. PK-1."""
    assert mistakes(requirements=["ok==1", f" {written}\n"]) == [("steps[0].requirements[1]", says)]


@pytest.mark.parametrize(
    "written",
    [
        ["left-pad@1.3.0", "@scope/na.me@0.0.1-rc.1+b.2"],
        {"left-pad": "1.3.0", "@scope/na.me": "0.0.1-rc.1+b.2"},
    ],
)
def test_packages_are_a_list_or_an_object(written: Any) -> None:
    """`name@version` or versions by name say the same. PK-1."""
    found = checked(language="typescript", packages=written).packages
    assert found == ("@scope/na.me@0.0.1-rc.1+b.2", "left-pad@1.3.0")


NPM_UNPINNED = "is not pinned; write the version: name@1.2.3"
NPM_RANGE = "must be pinned to exactly one version, like 1.2.3"
NPM_NAME = "must name a package of the operator's registry, like name@1.2.3"
NPM_REFUSED = [
    ("left-pad", NPM_UNPINNED),
    ("@scope/name", NPM_UNPINNED),
    ("left-pad@", NPM_UNPINNED),
    ("left-pad@latest", NPM_RANGE),
    ("left-pad@^1.0.0", NPM_RANGE),
    ("left-pad@1.x", NPM_RANGE),
    ("left-pad@1.0", NPM_RANGE),
    ("left-pad@01.0.0", NPM_RANGE),
    ("left-pad@file:../x", NPM_RANGE),
    ("left-pad@npm:evil@1.0.0", NPM_NAME),
    ("left-pad@https://evil.example/x.tgz", NPM_RANGE),
    ("left-pad@git+https://evil.example/x.git", NPM_RANGE),
    ("left-pad@github:user/repo", NPM_RANGE),
    ("github:user/repo@1.0.0", NPM_NAME),
    ("../x@1.0.0", NPM_NAME),
    ("/x@1.0.0", NPM_NAME),
    ("-g@1.0.0", NPM_NAME),
    (".hidden@1.0.0", NPM_NAME),
    ("@scope@1.0.0", NPM_NAME),
    ("x" * 215 + "@1.0.0", NPM_NAME),
    ("", NPM_NAME),
    ("x@1.0.0-" + "1" * 495, NPM_RANGE),
]


@pytest.mark.parametrize(("written", "says"), NPM_REFUSED)
def test_npm_takes_only_exact_versions_of_its_registry(written: str, says: str) -> None:
    """A tag, a range, an address, an alias: refused at its place. PK-1."""
    found = mistakes(language="javascript", packages=["ok@1.0.0", f" {written}\n"])
    assert found == [("steps[0].packages[1]", says)]


MANY = {f"x{n}": "1.0.0" for n in range(101)}
OTHERS: list[tuple[dict[str, Any], list[str]]] = [
    ({"packages": "x"}, ["packages: must be an object of versions by name, or a list, not text"]),
    ({"packages": {"x": 1}}, ["packages.x: must be text like 1.2.3, not a number"]),
    (
        {"packages": [7, "y", None]},
        [
            "packages[0]: must be text like name@1.2.3, not a number",
            "packages[2]: must be text like name@1.2.3, not null",
            f"packages[1]: {NPM_UNPINNED}",
        ],
    ),
    (
        {"packages": ["x@1.0.0", "y@1.0.0", "x@2.0.0"]},
        ["packages[2]: repeats 'x' of steps[0].packages[0]"],
    ),
    ({"packages": MANY}, ["packages: has 101 items; at most 100"]),
    ({"requirements": ["x==1"]}, ["requirements: is for language python only"]),
    (
        {"language": "python", "packages": ["x@1.0.0"]},
        ["packages: is for language javascript and typescript only"],
    ),
    (
        {"language": "python", "requirements": [f"x{n}==1" for n in range(101)]},
        ["requirements: has 101 items; at most 100"],
    ),
    ({"language": "python", "requirements": "x==1"}, ["requirements: must be a list, not text"]),
    (
        {"language": "python", "requirements": [{}]},
        ["requirements[0]: must be text like name==1.2.3, not an object"],
    ),
]


@pytest.mark.parametrize(("fields", "messages"), OTHERS)
def test_other_mistakes_of_packages(fields: dict[str, Any], messages: list[str]) -> None:
    """Wrong types, repeats, too many, and the field of another language. PK-1, PK-2."""
    found = mistakes(**{"language": "javascript", **fields})
    assert [f"{path}: {message}" for path, message in found] == [
        f"steps[0].{message}" for message in messages
    ]


def test_as_many_and_as_long_as_may_be() -> None:
    """A hundred packages; a name of 214 characters; requirements and versions of 500. PK-1."""
    names = [*list(MANY)[:99], "x" * 214]
    written = {**dict.fromkeys(names, "1.0.0"), "x0": "1.0.0-" + "1" * 494}
    found = checked(language="javascript", packages=written)
    assert set(found.packages) == {f"{name}@{version}" for name, version in written.items()}
    long = "x==" + "1" * 497
    assert checked(requirements=[long]).requirements == (long,)


PIECES = (
    *("x", "A.b", "==", "==", "1", "1.0", ".*", "[e]", "[e,f]", ";", "python_version", "<", "'3'"),
    *('"a@b"', "and", "(", ")", " ", "@", "://", "-e", "--pre", "\n", "#", "$(x)", "`", "/", "\0"),
)


@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join) | st.text(max_size=60))
@example("x==1 ; python_version < '3'")
@example("A.b[e,f]==1.0")
def test_what_is_taken_is_harmless_to_an_installer(written: str) -> None:
    """Whatever is written: taken is only a name, extras, one version and a marker. PK-1."""
    findings = Findings()
    taken = requirement(written, "x", findings)
    if findings.problems:
        return
    head, _, marker = taken.partition(" ; ")
    assert re.fullmatch(r"[a-z0-9-]+(\[[a-z0-9,._-]+\])?==[A-Za-z0-9!.+_-]+", head)
    assert not set("\n\r\0\\`#$") & set(marker)
    again = Findings()
    assert (requirement(taken, "x", again), again.problems) == (taken, [])


@given(json_values())
def test_any_json_is_judged(document: Any) -> None:
    """No value makes anything but packages, or mistakes with a place."""
    for check in (requirement, packages):
        findings = Findings()
        check(document, "x", findings)
        assert all(problem.path.startswith("x") for problem in findings.problems)


@given(st.permutations(["b==1", "a==2", "c==3"]))
def test_equal_needs_are_one_environment(written: list[str]) -> None:
    """Order and repeats do not matter; TypeScript needs what JavaScript needs. PK-4."""
    step = make.code_step(requirements=(*written, written[0]))
    assert step.needs == Needs(Language.PYTHON, ("a==2", "b==1", "c==3"))
    scripts = [
        make.code_step(language=language, packages=("x@1.0.0",))
        for language in (Language.JAVASCRIPT, Language.TYPESCRIPT)
    ]
    assert scripts[0].needs == scripts[1].needs == Needs(Language.JAVASCRIPT, ("x@1.0.0",))
    assert make.code_step().needs is None


def test_needs_are_found_wherever_the_step_stands() -> None:
    """Of a tree of steps each set of packages is named once, with the path of its field. PK-3."""
    one = {"kind": "code", "language": "python", "source": "1", "requirements": ["x==1"]}
    two = {"kind": "code", "language": "javascript", "source": "1", "packages": ["x@1.0.0"]}
    document = {
        "name": "W",
        "steps": [
            {**one, "name": "a"},
            {
                "name": "p",
                "kind": "parallel",
                "branches": [{"name": "l", "steps": [{**one, "name": "b"}, {**two, "name": "c"}]}],
            },
        ],
    }
    definition = check_definition(document, MiniJinjaTemplates().problems)
    assert needs_of(definition) == {
        Needs(Language.PYTHON, ("x==1",)): "steps[0].requirements",
        Needs(Language.JAVASCRIPT, ("x@1.0.0",)): "steps[1].branches[0].steps[1].packages",
    }
    bare = evolve(make.definition(), steps=())
    assert isinstance(bare, Definition)
    assert needs_of(bare) == {}


WAIT = DelayStep("wait", DurationMs(1))


def test_every_code_step_of_a_tree_is_replaced_with_its_path_at_hand() -> None:
    """Those in branches and rounds as those in the list; all others stay as they are."""
    inner = ParallelStep("both", (Branch("a", (make.code_step("x"),)), Branch("b", (WAIT,))))
    cases = (Case("{{ true }}", (make.code_step("yes"),)),)
    choice = SwitchStep("pick", cases, (make.code_step("no"),))
    tree = (make.code_step("one"), WAIT, LoopStep("each", [1], "item", (inner,)), choice)
    seen: list[str] = []

    def change(path: str, step: CodeStep) -> CodeStep:
        seen.append(path)
        return evolve(step, source="changed")

    changed = replaced(make.definition(*tree, on_failure=(make.code_step("tell"),)), change)
    one, wait, each, pick = changed.steps
    assert seen == [
        "steps[0]",
        "steps[2].steps[0].branches[0].steps[0]",
        "steps[3].cases[0].steps[0]",
        "steps[3].else[0]",
        "onFailure[0]",
    ]
    new = make.code_step("yes", source="changed"), make.code_step("no", source="changed")
    assert pick == SwitchStep("pick", (Case("{{ true }}", new[:1]),), new[1:])
    assert one == evolve(tree[0], source="changed")
    assert wait is WAIT
    (both,) = each.steps  # type: ignore[union-attr]
    assert both.branches[0].steps == (make.code_step("x", source="changed"),)
    assert (both.branches[1], both.name) == (inner.branches[1], "both")
