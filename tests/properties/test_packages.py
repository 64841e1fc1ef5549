"""Packages that steps ask for: pinned names of the operator's index, and nothing else."""

import re
from typing import Any

import pytest
from attrs import evolve
from hypothesis import example, given
from hypothesis import strategies as st

from adapters_runtime.templates import MiniJinjaTemplates
from wfcore.errors import InvalidDefinition
from wfcore.model.workflow import CodeStep, Definition, Language, Needs
from wfcore.rules.definition import check_definition
from wfcore.rules.definition_checks import Findings
from wfcore.rules.packages import needs_of, packages, requirement
from wfcore.testing import builders as make
from wfcore.testing.strategies import json_values


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


REFUSED = [
    ("requests", "is not pinned"),
    ("requests[socks]", "is not pinned"),
    ("requests; python_version<'3'", "is not pinned"),
    ("requests>=2", "exactly one version"),
    ("requests~=2.0", "exactly one version"),
    ("requests!=2.0", "exactly one version"),
    ("requests===2.0", "exactly one version"),
    ("requests==2.*", "exactly one version"),
    ("requests==2.0,<3", "exactly one version"),
    ("-r other.txt", "is an option"),
    ("--index-url=https://evil.example/x", "is an option"),
    ("-e .", "is an option"),
    ("https://evil.example/x-1.0.whl", "names an address"),
    ("git+https://evil.example/x", "names an address"),
    ("x @ https://evil.example/x.whl", "names an address"),
    ("x[y] @ file:///etc/passwd", "names an address"),
    ("x@1.0", "names an address"),
    (".", "is a path"),
    ("./x", "is a path"),
    ("/srv/x-1.0-py3-none-any.whl", "is a path"),
    ("~/x", "is a path"),
    ("x-1.0.tar.gz", "is a path"),
    ("a\\b", "is a path"),
    ("x==1 --hash=sha256:00", "must be a pinned requirement"),
    ("x==1 --config-settings=a=b", "must be a pinned requirement"),
    ("x==1 # comment", "must be a pinned requirement"),
    ("x==1 ; $(reboot)", "must be a pinned requirement"),
    ("x==1\n--pre", "must be a pinned requirement"),
    ("x==${VERSION}", "must be a pinned requirement"),
    ("", "must be a pinned requirement"),
    ("x==" + "1" * 500, "is 503 characters long; at most 500"),
]


@pytest.mark.parametrize(("written", "says"), REFUSED)
def test_anything_else_is_refused_by_its_field(written: str, says: str) -> None:
    """An option, an address, a path, a range: each has its own words. PK-1."""
    ((path, message),) = mistakes(requirements=["ok==1", written])
    assert path == "steps[0].requirements[1]"
    assert says in message


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


NPM_REFUSED = [
    ("left-pad", "is not pinned"),
    ("@scope/name", "is not pinned"),
    ("left-pad@", "is not pinned"),
    ("left-pad@latest", "exactly one version"),
    ("left-pad@^1.0.0", "exactly one version"),
    ("left-pad@1.x", "exactly one version"),
    ("left-pad@1.0", "exactly one version"),
    ("left-pad@01.0.0", "exactly one version"),
    ("left-pad@file:../x", "exactly one version"),
    ("left-pad@npm:evil@1.0.0", "must name a package"),
    ("left-pad@https://evil.example/x.tgz", "exactly one version"),
    ("github:user/repo@1.0.0", "must name a package"),
    ("../x@1.0.0", "must name a package"),
    ("/x@1.0.0", "must name a package"),
    ("-g@1.0.0", "must name a package"),
    (".hidden@1.0.0", "must name a package"),
    ("@scope@1.0.0", "must name a package"),
    ("x" * 215 + "@1.0.0", "must name a package"),
    ("", "must name a package"),
]


@pytest.mark.parametrize(("written", "says"), NPM_REFUSED)
def test_npm_takes_only_exact_versions_of_its_registry(written: str, says: str) -> None:
    """A tag, a range, an address, an alias: refused at its place. PK-1."""
    ((path, message),) = mistakes(language="javascript", packages=["ok@1.0.0", written])
    assert path == "steps[0].packages[1]"
    assert says in message


def test_other_mistakes_of_packages() -> None:
    """Wrong types, repeats, too many, and the field of another language. PK-1, PK-2."""
    js: dict[str, Any] = {"language": "javascript"}
    assert mistakes(**js, packages="x")[0] == (
        "steps[0].packages", "must be an object of versions by name, or a list, not text",
    )  # fmt: skip
    assert mistakes(**js, packages={"x": 1})[0] == (
        "steps[0].packages.x", "must be text like 1.2.3, not a number",
    )  # fmt: skip
    assert mistakes(**js, packages=[7])[0] == (
        "steps[0].packages[0]", "must be text like name@1.2.3, not a number",
    )  # fmt: skip
    assert mistakes(**js, packages=["x@1.0.0", "x@2.0.0"])[0] == (
        "steps[0].packages[1]", "repeats 'x' of steps[0].packages[0]",
    )  # fmt: skip
    many = {f"x{n}": "1.0.0" for n in range(101)}
    assert mistakes(**js, packages=many)[0] == (
        "steps[0].packages", "has 101 items; at most 100",
    )  # fmt: skip
    assert mistakes(requirements=[f"x{n}==1" for n in range(101)])[0] == (
        "steps[0].requirements", "has 101 items; at most 100",
    )  # fmt: skip
    assert mistakes(**js, requirements=["x==1"])[0] == (
        "steps[0].requirements", "is for language python only",
    )  # fmt: skip
    assert mistakes(packages=["x@1.0.0"])[0] == (
        "steps[0].packages", "is for language javascript and typescript only",
    )  # fmt: skip
    assert mistakes(requirements="x==1")[0][0] == "steps[0].requirements"
    assert mistakes(requirements=[{}])[0][0] == "steps[0].requirements[0]"


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
