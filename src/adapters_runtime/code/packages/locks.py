"""
Locks: the lists of all packages to install, at every depth, each with its hash. PK-9, PK-10.

A lock is made from the result of an installer in its sandbox, which is checked here: only packages
from the operator's index or registry are accepted, and no package that another package names by
address, repository or path. A lock is JSON without hosts and tokens.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from wfcore.errors import PackagesUnavailable

LONGEST = 1 << 20
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.!+_-]*")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_INTEGRITY = re.compile(r"sha(?:256|384|512)-[A-Za-z0-9+/]+={0,2}")
_RANGE = re.compile(r"(?:npm:(?:@[^/@:]+/)?[^/@:.][^/@:]*@)?(?![.~]/|\.\.?$)[^:/]*")
_FILE = re.compile(r"\.(?:tgz|tar\.gz|tar)$", re.IGNORECASE)
_DEPENDENCIES = ("dependencies", "optionalDependencies", "peerDependencies")
_KEPT = ("name", "version", "integrity", "dependencies", "optionalDependencies", "os", "cpu",
         "libc", "engines", "optional", "peer", "inBundle", "bundleDependencies",
         "peerDependencies", "peerDependenciesMeta", "devOptional")  # fmt: skip
_ELSEWHERE = "only what the index itself has is installed, not what is named by address or path"


def from_pip(report: Any, platform: str, *, wheels_only: bool) -> str:
    """
    The lock of the packages in *report*, the output of `pip install --report`.

    Raises `PackagesUnavailable` that names a package that is not from the index, has no hash, or
    (with *wheels_only*) no wheel.
    """
    pinned = {}
    for one in _list(report, "install"):
        name, version = _text(one, "metadata", "name"), _text(one, "metadata", "version")
        found = _mapping(one, "download_info")
        if not _NAME.fullmatch(name) or not _VERSION.fullmatch(version):
            raise PackagesUnavailable("pip resolved a package whose name or version is none")
        if one.get("is_direct") is not False or "archive_info" not in found:
            raise PackagesUnavailable(f"{name} is named by address or path; {_ELSEWHERE}")
        if wheels_only and not urlsplit(_text(found, "url")).path.endswith(".whl"):
            raise PackagesUnavailable(f"{name}=={version} is there as source only, without a wheel")
        digest = _sha256_in(_mapping(found, "archive_info"))
        if not _SHA256.fullmatch(digest):
            raise PackagesUnavailable(f"the index gives no sha256 of {name}=={version}")
        pinned[f"{name}=={version}"] = digest
    return _written({"platform": platform, "packages": pinned})


def _sha256_in(archive: Mapping[str, Any]) -> str:
    """The hash of an archive. pip 23.0, of Debian 12, writes computed hashes to `hash` only."""
    known = _text(_mapping(archive, "hashes", {}), "sha256")
    return known or _text(archive, "hash").removeprefix("sha256=")


def requirements(lock: str) -> str:
    """*lock* as a requirements file with hashes."""
    packages = json.loads(lock)["packages"]
    return "".join(f"{one} --hash=sha256:{digest}\n" for one, digest in packages.items())


def platform_of(lock: str) -> str | None:
    """The platform that *lock* was made for, or None for all platforms."""
    platform = json.loads(lock).get("platform")
    return None if platform is None else str(platform)


def from_npm(lockfile: Any, origins: Collection[str]) -> str:
    """
    The lock of the packages in *lockfile*, a `package-lock.json` of version 3. *origins*: the
    operator's registries.

    Raises `PackagesUnavailable` that names a package that is not from a registry or has no hash.
    """
    packages = {}
    for path, entry in sorted(_mapping(lockfile, "packages").items()):
        name = path.rpartition("node_modules/")[2] or "the workflow"
        for wanted, spec in _specs(entry):
            if not isinstance(spec, str) or not _RANGE.fullmatch(spec) or _FILE.search(spec):
                problem = f"{name} asks for {wanted} by address or path"
                raise PackagesUnavailable(f"{problem}; {_ELSEWHERE}")
        if path:
            _check_origin(name, path, entry, origins)
            packages[path] = {key: entry[key] for key in _KEPT if key in entry}
    return _written({"packages": packages})


def _specs(entry: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for field in _DEPENDENCIES:
        yield from _mapping(entry, field, {}).items()


def _check_origin(name: str, path: str, entry: Mapping[str, Any], origins: Collection[str]) -> None:
    """
    Raises `PackagesUnavailable` for a package from elsewhere, or without a hash of its own.

    A bundled package needs no hash, because the hash of the package around it covers the bundled
    package.
    """
    if entry.get("link") or not path.startswith("node_modules/") or "/../" in f"/{path}/":
        raise PackagesUnavailable(f"{name} is a path; {_ELSEWHERE}")
    if entry.get("inBundle"):
        return
    if origin_of(str(entry.get("resolved", ""))) not in origins:
        raise PackagesUnavailable(f"{name} does not come from the registry; {_ELSEWHERE}")
    if not _INTEGRITY.fullmatch(str(entry.get("integrity", ""))):
        raise PackagesUnavailable(f"the registry gives no sha512 of {name}")


def origin_of(url: str) -> str | None:
    """Scheme, host and port of a web address in normal form, or None for another text."""
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    except (ValueError, KeyError):
        return None
    return f"{parts.scheme}://{parts.hostname}:{port}" if parts.hostname else None


def lockfile(lock: str, wanted: Mapping[str, str]) -> str:
    """*lock* as the `package-lock.json` of a project with the dependencies *wanted*."""
    packages = {"": {"dependencies": dict(wanted)}, **json.loads(lock)["packages"]}
    return json.dumps({"lockfileVersion": 3, "requires": True, "packages": packages})


def _written(lock: Mapping[str, Any]) -> str:
    text = json.dumps(lock, sort_keys=True, separators=(",", ":"))
    if len(text) > LONGEST:
        raise PackagesUnavailable(
            f"they need too many others: their lock is over {LONGEST:,} bytes"
        )
    return text


def _list(document: Any, key: str) -> list[Any]:
    found = document.get(key) if isinstance(document, Mapping) else None
    if not isinstance(found, list):
        raise PackagesUnavailable(f"what was resolved cannot be read: it has no {key!r}")
    return found


def _mapping(document: Any, key: str, default: Any = None) -> Mapping[str, Any]:
    found = document.get(key, default) if isinstance(document, Mapping) else None
    if not isinstance(found, Mapping):
        raise PackagesUnavailable(f"what was resolved cannot be read: it has no {key!r}")
    return found


def _text(document: Any, *keys: str) -> str:
    for key in keys[:-1]:
        document = _mapping(document, key)
    return str(document.get(keys[-1], ""))
