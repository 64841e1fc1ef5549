"""Settings of servers that share a store: the role of each, and values that must be the same."""

import re
from collections.abc import Mapping
from enum import StrEnum

from adapters_store import POSTGRES, servers_of
from wfcore.errors import InvalidInput
from wfcore.rules.definition.steps import LABEL_PATTERN
from wfcore.rules.ids import CELL_PATTERN, FIRST_CELL
from wfcore.rules.limits import MAX_NAME

ARTIFACTS = "WFCORE_ARTIFACTS"
DOWNLOADS = "WFCORE_ARTIFACT_DOWNLOADS"
CELL = "WFCORE_CELL"
DIRECT = "WFCORE_STORE_DIRECT"
ENGINE = "WFCORE_ENGINE"
LABELS = "WFCORE_LABELS"
PROCESSES = "WFCORE_PROCESSES"
ROLE = "WFCORE_ROLE"
SIGNING_KEY = "WFCORE_SIGNING_KEY"
_BUCKET = re.compile(
    r"(?:s3|gs|az)://[a-z0-9][a-z0-9._-]{1,220}(?:/[A-Za-z0-9_-][A-Za-z0-9._-]*)*/?"
)
_SIGNING_HEX = re.compile(r"[0-9a-fA-F]{64}", re.ASCII)


class Role(StrEnum):
    """The part of the work that a server does."""

    API = "api"
    """The server answers requests, and leaves all work to other servers."""
    WORKER = "worker"
    """The server runs steps and sends callbacks and notices; it answers probes only."""
    ALL = "all"


def is_shared(name: str, url: str | None) -> bool:
    """Whether several machines may use the store at *url*. Raises `InvalidInput`."""
    if not (url or "").startswith(POSTGRES):
        return False
    try:
        servers_of(url or "")
    except ValueError as error:
        raise InvalidInput(name, str(error)) from None
    return True


def role_of(env: Mapping[str, str], option: str | None, shared: bool) -> Role:
    """The role. Raises `InvalidInput` for a part of the work on a store that is not shared."""
    name, text = ROLE, env.get(ROLE)
    if option:
        name, text = "--role", option
    if not text:
        return Role.ALL
    if text not in tuple(Role):
        raise InvalidInput(name, f"must be one of {', '.join(Role)}")
    if Role(text) is not Role.ALL and not shared:
        fix = "must be all unless servers share a store; set WFCORE_STORE to postgresql://…"
        raise InvalidInput(name, fix)
    return Role(text)


def process_count(
    env: Mapping[str, str], option: int | None, places: int, store: str | None
) -> int:
    """The number of servers of one command. Raises `InvalidInput`, also for a store in memory."""
    name, text = PROCESSES, env.get(PROCESSES) or "1"
    if option:
        name, text = "--processes", str(option)
    if not re.fullmatch(r"[1-9][0-9]?", text, re.ASCII):
        raise InvalidInput(name, "must be a whole number from 1 to 99")
    count = int(text)
    if count > places:
        fix = f"must not be over WFCORE_CONCURRENCY ({places}), which the processes share"
        raise InvalidInput(name, fix)
    if count > 1 and store == "memory:":
        raise InvalidInput(name, "must be 1 for a store in memory, which no other process sees")
    return count


def labels(env: Mapping[str, str]) -> tuple[str, ...]:
    """The labels of this server, from a list with commas or spaces. Raises `InvalidInput`."""
    found = env.get(LABELS, "").replace(",", " ").split()
    for one in found:
        if not re.fullmatch(LABEL_PATTERN, one) or len(one) > MAX_NAME:
            raise InvalidInput(LABELS, f"{one!r} is not a label; write them like gpu,eu-1")
    return tuple(sorted(set(found)))


def cell(env: Mapping[str, str]) -> str:
    """The cell in every id that is made here. Raises `InvalidInput`."""
    text = env.get(CELL) or FIRST_CELL
    if not re.fullmatch(CELL_PATTERN, text, re.ASCII):
        fix = "must be a letter from g to z and then a digit or a letter from a to z, such as k1"
        raise InvalidInput(CELL, fix)
    return text


def signing_keys(env: Mapping[str, str]) -> tuple[tuple[str, bytes], ...]:
    """Names and keys, from a list of `NAME:HEX`. Raises `InvalidInput`, which shows no key."""
    found: dict[str, bytes] = {}
    for one in env.get(SIGNING_KEY, "").replace(",", " ").split():
        name, _, text = one.partition(":")
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,40}", name) or not _SIGNING_HEX.fullmatch(text):
            fix = "must be NAME:KEY[,NAME:KEY…], each KEY as `openssl rand -hex 32` prints one"
            raise InvalidInput(SIGNING_KEY, fix)
        if name in found:
            raise InvalidInput(SIGNING_KEY, f"names two keys {name}; give each a name of its own")
        found[name] = bytes.fromhex(text)
    return tuple(found.items())


def artifacts_url(env: Mapping[str, str], store: str | None, shared: bool) -> str | None:
    """The URL of artifacts; None: the data folder keeps artifacts. Raises `InvalidInput`."""
    text = env.get(ARTIFACTS)
    if not text or (_BUCKET.fullmatch(text) and store != "memory:"):
        return text or None
    folder = text.startswith("file:///") and text.removeprefix("file://").strip("/")
    if not (shared and folder):
        raise InvalidInput(
            ARTIFACTS,
            "must be s3://BUCKET/PREFIX (or gs://, az://), credentials not in it, or for servers "
            "that share a store on PostgreSQL file:///FOLDER, which all of them see",
        )
    return text


def direct_downloads(env: Mapping[str, str], artifacts: str | None) -> bool:
    """Whether links lead to the bucket itself. Raises `InvalidInput`."""
    text = env.get(DOWNLOADS) or "served"
    bucket = _BUCKET.fullmatch(artifacts or "")
    if text not in ("served", "direct") or (text == "direct" and not bucket):
        fix = f"must be served, or direct where {ARTIFACTS} is a bucket"
        raise InvalidInput(DOWNLOADS, fix)
    return text == "direct"


def engine_url(env: Mapping[str, str], shared: bool) -> str | None:
    """The URL of the dispatching queue. Raises `InvalidInput` for a store that is not shared."""
    url = env.get(ENGINE) or None
    if url is not None and not shared:
        fix = "is for servers that share a store; set WFCORE_STORE to postgresql://…"
        raise InvalidInput(ENGINE, fix)
    return url


def direct_url(env: Mapping[str, str], shared: bool) -> str | None:
    """The URL for listening to hints; None: the store's URL. Raises `InvalidInput`."""
    url = env.get(DIRECT) or None
    if url is not None and not (shared and is_shared(DIRECT, url)):
        fix = "must be a postgresql:// URL of the database that WFCORE_STORE names"
        raise InvalidInput(DIRECT, fix)
    return url
