"""
Packages that code steps require: pinned, by name, from the operator's index. PK-1, PK-2.

All else that an installer would accept (options, addresses, paths, ranges) is refused: a definition
names packages, and never their source or the way to install them.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import evolve

from wfcore.model.json import Json
from wfcore.model.work import SCRIPTS
from wfcore.model.workflow import (
    CodeStep,
    Definition,
    Language,
    LoopStep,
    Needs,
    ParallelStep,
    Step,
    SwitchStep,
    lists_of,
)
from wfcore.rules.definition.values import Findings, accepting, any_of
from wfcore.rules.limits import MAX_PACKAGES, MAX_REQUIREMENT
from wfcore.rules.paths import below

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_VERSION = (
    r"(?:[0-9]+!)?[0-9]+(?:\.[0-9]+)*(?:(?:a|b|rc)[0-9]+)?(?:\.post[0-9]+)?(?:\.dev[0-9]+)?"
    r"(?:\+[A-Za-z0-9]+(?:[._-][A-Za-z0-9]+)*)?"
)
_MARKER = (
    r"(?:python_version|python_full_version|os_name|sys_platform|platform_[a-z_]+"
    r"|implementation_name|implementation_version|extra|and|or|not|in"
    r"|[<>=!~]=?=?|[()]|'[^'\\]*'|\"[^\"\\]*\"|\s)+"
)
_REQUIREMENT = re.compile(
    rf"(?P<name>{_NAME})\s*(?:\[(?P<extras>\s*{_NAME}\s*(?:,\s*{_NAME}\s*)*)\])?\s*"
    rf"==\s*(?P<version>{_VERSION})\s*(?:;(?P<marker>{_MARKER}))?"
)
_NPM_NAME = re.compile(r"(?:@[A-Za-z0-9][A-Za-z0-9._~-]*/)?[A-Za-z0-9][A-Za-z0-9._~-]*")
_NPM_VERSION = re.compile(
    r"(?:0|[1-9][0-9]*)(?:\.(?:0|[1-9][0-9]*)){2}"
    r"(?:-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)
_NPM_LONGEST = 214
_FILES = (".whl", ".zip", ".tar.gz", ".tgz", ".txt")


@accepting({"type": "string"})
def requirement(document: Json, path: str, findings: Findings) -> Any:
    """One pinned Python requirement in its normal form."""
    if not isinstance(document, str):
        return findings.wrong(path, "text like name==1.2.3", document)
    text = document.strip()
    match = _REQUIREMENT.fullmatch(text) if len(text) <= MAX_REQUIREMENT else None
    if match is None:
        return findings.add(path, _mistake(text))
    extras = sorted({one.strip().lower() for one in (match["extras"] or "").split(",")} - {""})
    marker = " ".join((match["marker"] or "").split())
    name = re.sub(r"[-_.]+", "-", match["name"]).lower()
    return (
        name
        + (f"[{','.join(extras)}]" if extras else "")
        + f"=={match['version']}"
        + (f" ; {marker}" if marker else "")
    )


def _mistake(text: str) -> str:
    """The mistake in a requirement that is not pinned, and its correction."""
    if len(text) > MAX_REQUIREMENT:
        return f"is {len(text)} characters long; at most {MAX_REQUIREMENT}"
    if text.startswith("-"):
        return "is an option; only requirements go here, like name==1.2.3"
    if "://" in text or re.match(rf"{_NAME}\s*(?:\[[^]]*\])?\s*@", text):
        return "names an address; packages come from the operator's index, like name==1.2.3"
    if text.startswith((".", "/", "~")) or "\\" in text or text.lower().endswith(_FILES):
        return "is a path; packages come from the operator's index, like name==1.2.3"
    if re.fullmatch(rf"{_NAME}\s*(?:\[[^]]*\])?\s*(?:;.*)?", text, re.DOTALL):
        return "is not pinned; write the version: name==1.2.3"
    if re.match(rf"{_NAME}\s*(?:\[[^]]*\])?\s*(?:[<>!~]=?|===|==[^;]*[,*])", text):
        return "must be pinned to exactly one version: name==1.2.3"
    return (
        "must be a pinned requirement: name==1.2.3, name[extra]==1.2.3, "
        "or with a marker: name==1.2.3; python_version < '3.13'"
    )


@accepting(
    any_of(
        {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "maxProperties": MAX_PACKAGES,
        },
        {"type": "array", "items": {"type": "string"}, "maxItems": MAX_PACKAGES},
    )
)
def packages(document: Json, path: str, findings: Findings) -> Any:
    """The npm packages of a step, as an object or as a list of `name@version`, in normal form."""
    pairs: list[tuple[str, str | None, Json]]
    if isinstance(document, Mapping):
        pairs = [(below(path, name), name, version) for name, version in document.items()]
    elif isinstance(document, list | tuple):
        pairs = [_split(one, below(path, at), findings) for at, one in enumerate(document)]
    else:
        return findings.wrong(path, "an object of versions by name, or a list", document)
    if len(pairs) > MAX_PACKAGES:
        return findings.add(path, f"has {len(pairs)} items; at most {MAX_PACKAGES}")
    seen: dict[Json, str] = {}
    for where, name, version in pairs:
        if name is None:
            continue
        _check_npm(name, version, where, findings)
        if seen.setdefault(name, where) != where:
            findings.add(where, f"repeats {name!r} of {seen[name]}")
    return tuple(sorted(f"{name}@{version}" for _, name, version in pairs))


def _split(written: Json, path: str, findings: Findings) -> tuple[str, str | None, Json]:
    if not isinstance(written, str):
        findings.wrong(path, "text like name@1.2.3", written)
        return path, None, None
    name, at, version = written.strip().rpartition("@")
    return (path, name, version) if at and name else (path, written.strip(), "")


def _check_npm(name: str, version: Json, path: str, findings: Findings) -> None:
    if len(name) > _NPM_LONGEST or not _NPM_NAME.fullmatch(name):
        findings.add(path, "must name a package of the operator's registry, like name@1.2.3")
    elif not isinstance(version, str):
        findings.wrong(path, "text like 1.2.3", version)
    elif not version:
        findings.add(path, "is not pinned; write the version: name@1.2.3")
    elif len(version) > MAX_REQUIREMENT or not _NPM_VERSION.fullmatch(version):
        findings.add(path, "must be pinned to exactly one version, like 1.2.3")


_FIELDS = {
    "requirements": (Language.PYTHON,),
    "packages": SCRIPTS,
    "runtime": SCRIPTS,
}


def package_problems(language: Language, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The problems of packages or a runtime of one language on a step of another. PK-2."""
    for field, languages in _FIELDS.items():
        if values.get(field) and language not in languages:
            yield field, f"is for language {' and '.join(languages)} only"


def with_locks_of(definition: Definition, before: Definition | None) -> Definition:
    """*definition* with the locks of *before* for the same packages. PK-9."""
    if before is None:
        return definition
    return locked(definition, {evolve(needs, lock=None): needs for needs in needs_of(before)})


def locked(definition: Definition, found: Mapping[Needs, Needs]) -> Definition:
    """*definition* with the locks for its package requirements."""

    def change(path: str, step: CodeStep) -> CodeStep:
        now = found.get(step.needs) if step.needs else None
        return evolve(step, lock=now.lock) if now else step

    return replaced(definition, change) if found else definition


def needs_of(definition: Definition) -> Mapping[Needs, str]:
    """
    The package requirements of the steps of a definition, each with the path of its first field.
    """
    found: dict[Needs, str] = {}
    for path, step in definition.located():
        if isinstance(step, CodeStep) and step.needs is not None:
            field = "requirements" if step.requirements else "packages"
            found.setdefault(step.needs, below(path, field))
    return found


Change = Callable[[str, CodeStep], CodeStep]


def replaced(definition: Definition, change: Change) -> Definition:
    """
    *definition* with every code step replaced by the result of *change* for its path and itself.
    """
    steps = _all_replaced(definition.steps, change, "steps")
    on_failure = _all_replaced(definition.on_failure, change, "onFailure")
    return evolve(definition, steps=steps, on_failure=on_failure)


def _all_replaced(steps: tuple[Step, ...], change: Change, path: str) -> tuple[Step, ...]:
    return tuple(_replaced(step, change, f"{path}[{at}]") for at, step in enumerate(steps))


def _replaced(step: Step, change: Change, path: str) -> Step:
    match step:
        case CodeStep():
            return change(path, step)
        case ParallelStep():
            branches = tuple(
                evolve(branch, steps=_all_replaced(inside, change, f"{path}.{below}"))
                for branch, (below, inside) in zip(step.branches, lists_of(step), strict=True)
            )
            return evolve(step, branches=branches)
        case SwitchStep():
            cases = tuple(
                evolve(case, steps=_all_replaced(case.steps, change, f"{path}.cases[{at}].steps"))
                for at, case in enumerate(step.cases)
            )
            otherwise = _all_replaced(step.otherwise, change, f"{path}.else")
            return evolve(step, cases=cases, otherwise=otherwise)
        case LoopStep():
            return evolve(step, steps=_all_replaced(step.steps, change, f"{path}.steps"))
        case _:
            return step
