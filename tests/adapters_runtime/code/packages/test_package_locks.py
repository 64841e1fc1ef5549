"""What was resolved becomes a lock: only what the index has, each with its hash. PK-9, PK-10."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from adapters_runtime.code.packages import locks
from wfcore.errors import PackagesUnavailable

HASH = "0123456789abcdef" * 4
WHEEL = "https://index.example:8443/files/other-2.0-py3-none-any.whl#egg=other"
REGISTRY = "https://registry.example"
ORIGINS = {f"{REGISTRY}:443"}
SHA512 = "sha512-" + "A" * 86 + "=="


def resolved(**changed: Any) -> dict[str, Any]:
    """A package as pip reports it, with parts of its `download_info` or itself *changed*."""
    info = {"url": WHEEL, "archive_info": {"hashes": {"sha256": HASH}}}
    parts = {name: changed.pop(name) for name in ("url", "archive_info") if name in changed}
    whole: dict[str, Any] = {
        "metadata": {"name": "other", "version": "2.0"},
        "download_info": info | parts,
        "is_direct": False,
    }
    return whole | changed


def test_a_lock_of_pip_is_read_back() -> None:
    """It says the platform, and each package with its hash, without an address."""
    report = {"install": [resolved(), resolved(metadata={"name": "a", "version": "1!2.0+x"})]}
    lock = locks.from_pip(report, "python 3.11 here", wheels_only=True)
    assert locks.platform_of(lock) == "python 3.11 here"
    assert locks.requirements(lock) == (
        f"a==1!2.0+x --hash=sha256:{HASH}\nother==2.0 --hash=sha256:{HASH}\n"
    )
    assert "index.example" not in lock


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"metadata": {"name": "-r", "version": "1"}}, "a package whose name or version is none"),
        (
            {"metadata": {"name": "a", "version": "1 --x"}},
            "a package whose name or version is none",
        ),
        ({"metadata": {"name": "a"}}, "a package whose name or version is none"),
        ({"metadata": None}, "it has no 'metadata'"),
        ({"download_info": []}, "it has no 'download_info'"),
        ({"is_direct": True}, "other is named by address or path; only what the index itself has"),
        ({"is_direct": None}, "other is named by address or path"),
        ({"download_info": {"url": WHEEL, "vcs_info": {}}}, "other is named by address or path"),
        ({"url": "https://index.example/other-2.0.tar.gz"}, "other==2.0 is there as source only"),
        ({"url": "https://index.example/x.tar.gz?a=b.whl"}, "other==2.0 is there as source only"),
        ({"archive_info": {"hashes": {"sha256": HASH[1:]}}}, "no sha256 of other==2.0"),
        ({"archive_info": {"hashes": {"md5": HASH}}}, "no sha256 of other==2.0"),
        ({"archive_info": {"hashes": {"sha256": None}}}, "no sha256 of other==2.0"),
        ({"archive_info": {}}, "no sha256 of other==2.0"),
        ({"archive_info": {"hash": f"md5={HASH}"}}, "no sha256 of other==2.0"),
        ({"archive_info": {"hashes": [HASH]}}, "it has no 'hashes'"),
        ({"archive_info": [HASH]}, "it has no 'archive_info'"),
    ],
)
def test_what_pip_resolved_elsewhere_or_without_a_hash_is_refused(
    changed: dict[str, Any], told: str
) -> None:
    """By name, whatever else is fine; a report that code of strangers wrote is an error, too."""
    with pytest.raises(PackagesUnavailable) as refused:
        locks.from_pip({"install": [resolved(), resolved(**changed)]}, "here", wheels_only=True)
    assert told in str(refused.value)


def test_a_hash_is_read_as_older_versions_of_pip_tell_it() -> None:
    """pip 23.0 of Debian 12 names what it computed of a file in one text."""
    report = {"install": [resolved(archive_info={"hash": f"sha256={HASH}"})]}
    lock = locks.from_pip(report, "here", wheels_only=True)
    assert locks.requirements(lock) == f"other==2.0 --hash=sha256:{HASH}\n"


def test_source_is_locked_only_where_builds_are_allowed() -> None:
    """With its hash, as a wheel is."""
    report = {"install": [resolved(url="https://index.example/other-2.0.tar.gz")]}
    lock = locks.from_pip(report, "here", wheels_only=False)
    assert locks.requirements(lock) == f"other==2.0 --hash=sha256:{HASH}\n"


@pytest.mark.parametrize("report", [None, [], {}, {"install": {}}, {"install": [1]}])
def test_a_report_that_is_none_is_refused(report: Any) -> None:
    """In words that say what is missing."""
    with pytest.raises(PackagesUnavailable, match="what was resolved cannot be read: it has no"):
        locks.from_pip(report, "here", wheels_only=True)


def test_a_lock_has_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be as long as the limit, and no longer."""
    report = {"install": [resolved()]}
    size = len(locks.from_pip(report, "here", wheels_only=True))
    monkeypatch.setattr(locks, "LONGEST", size)
    assert locks.from_pip(report, "here", wheels_only=True)
    monkeypatch.setattr(locks, "LONGEST", size - 1)
    with pytest.raises(PackagesUnavailable, match=f"their lock is over {size - 1:,} bytes"):
        locks.from_pip(report, "here", wheels_only=True)


def in_registry(**changed: Any) -> dict[str, Any]:
    """A package as npm locks it."""
    entry = {"version": "1.0.0", "resolved": f"{REGISTRY}/a/-/a-1.0.0.tgz", "integrity": SHA512}
    return entry | changed


def lock_of(packages: Mapping[str, Any]) -> str:
    return locks.from_npm({"packages": packages}, ORIGINS)


def test_a_lock_of_npm_is_read_back() -> None:
    """It has no address, and what is bundled is held by the hash of what it is in."""
    ranges = {"b": "^1.2.3 || >=2 <3", "c": "npm:@scope/d@~1.0", "e": "latest", "f": ""}
    bundled = {"version": "3.0.0", "inBundle": True}
    packages = {
        "": {"dependencies": {"a": "1.0.0"}},
        "node_modules/a": in_registry(dependencies=ranges, license="MIT"),
        "node_modules/a/node_modules/g": bundled,
    }
    lock = lock_of(packages)
    assert json.loads(lock) == {
        "packages": {
            "node_modules/a": {"version": "1.0.0", "integrity": SHA512, "dependencies": ranges},
            "node_modules/a/node_modules/g": bundled,
        }
    }
    assert locks.platform_of(lock) is None
    again = json.loads(locks.lockfile(lock, {"a": "1.0.0"}))
    assert (again["lockfileVersion"], again["requires"]) == (3, True)
    assert again["packages"] == {"": packages[""], **json.loads(lock)["packages"]}


@pytest.mark.parametrize("field", ["dependencies", "optionalDependencies", "peerDependencies"])
@pytest.mark.parametrize(
    "spec",
    ["file:../b", "git+ssh://git@host/b", "host/b", "./b", "~/b", "..", "b.TGZ", "b.tar.gz", 1,
     "https://host/b", "npm:./b@1"],
)  # fmt: skip
def test_what_npm_is_asked_by_address_or_path_is_refused(field: str, spec: Any) -> None:
    """At every depth, with the name of who asks."""
    with pytest.raises(PackagesUnavailable, match=r"^a asks for b by address or path; only what"):
        lock_of({"node_modules/x/node_modules/a": in_registry(**{field: {"b": spec}})})
    with pytest.raises(PackagesUnavailable, match=r"^the workflow asks for b by address or path"):
        lock_of({"": {field: {"b": spec}}})


@pytest.mark.parametrize(
    ("path", "changed", "told"),
    [
        ("node_modules/a", {"link": True}, "a is a path"),
        ("../node_modules/a", {}, "a is a path"),
        ("node_modules/../../a", {}, "is a path"),
        ("node_modules/a", {"resolved": "https://other.example/a.tgz"}, "a does not come from the"),
        ("node_modules/a", {"resolved": f"{REGISTRY}:444/a.tgz"}, "a does not come from the"),
        ("node_modules/a", {"resolved": "http://registry.example/a.tgz"}, "a does not come from"),
        ("node_modules/a", {"resolved": None}, "a does not come from the registry"),
        ("node_modules/a", {"integrity": "sha1-AAAA"}, "the registry gives no sha512 of a"),
        ("node_modules/a", {"integrity": None}, "the registry gives no sha512 of a"),
        ("node_modules/a", {"dependencies": ["b"]}, "it has no 'dependencies'"),
    ],
)
def test_what_npm_found_elsewhere_or_without_a_hash_is_refused(
    path: str, changed: dict[str, Any], told: str
) -> None:
    """By name, whatever else is fine."""
    with pytest.raises(PackagesUnavailable) as refused:
        lock_of({"node_modules/fine": in_registry(), path: in_registry(**changed)})
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://Registry.example/a", "https://registry.example:443"),
        ("http://user:secret@registry.example/a", "http://registry.example:80"),
        ("https://registry.example:4873", "https://registry.example:4873"),
        ("https://registry.example:port/", None),
        ("ftp://registry.example/", None),
        ("https:///a", None),
        ("", None),
    ],
)
def test_an_origin_is_in_normal_form(url: str, origin: str | None) -> None:
    """Scheme, host and port, which are all that two addresses of a registry have in common."""
    assert locks.origin_of(url) == origin
