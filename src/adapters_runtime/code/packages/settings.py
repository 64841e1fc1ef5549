"""
The part of the operator's configuration that installers receive. PK-8, PK-11.

The part is the index or registry, the proxy, trusted certificates and timeouts, with the files and
folders that these settings name. Everything else in the environment and the configuration files is
left out: it may be secret, or make an installer do what no definition demands.
"""

import ast
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from attrs import field, frozen

from adapters_runtime.code.packages.sandbox import HERE

_NETWORK = re.compile(
    r"(?:https?|no|all)_proxy|ssl_cert_(?:file|dir)|requests_ca_bundle|curl_ca_bundle"
    r"|node_extra_ca_certs",
    re.IGNORECASE,
)
_PIP = frozenset(
    (
        *("index-url", "extra-index-url", "no-index", "find-links", "trusted-host"),
        *("cert", "client-cert", "proxy", "timeout", "default-timeout", "retries"),
    )
)
_PIP_LINE = re.compile(r"(?:global|install)\.([a-z-]+)=(.*)")
_NPM = re.compile(
    r"registry|@[^:/]+:registry|//[^=]+:[_A-Za-z]+|(?:https?-)?proxy|noproxy|cafile|ca(?:\[\])?|cert|key"
    r"|strict-ssl|fetch-[a-z-]+|_auth|_authToken|replace-registry-host",
    re.IGNORECASE,
)
_VARIABLE = re.compile(r"\$\{([^}]+)\}")
_MOST = 1 << 20


@frozen
class Configuration:
    """
    The settings of an installer, as environment variables and as files in `HERE`.

    `brought`: the folders that settings name. `registries`: the addresses of registries.
    """

    variables: Mapping[str, str] = field(repr=False)
    files: Mapping[str, bytes] = field(factory=dict, repr=False)
    brought: tuple[str, ...] = ()
    registries: tuple[str, ...] = ()


def for_pip(environment: Mapping[str, str], listed: str) -> Configuration:
    """The settings of pip. *listed*: the output of `pip config list`."""
    known: dict[str, str] = {}
    for section in ("global.", "install."):
        for line in listed.splitlines():
            match = _PIP_LINE.fullmatch(line)
            if match and match[1] in _PIP and line.startswith(section):
                known[match[1]] = str(ast.literal_eval(match[2]))
    for name, value in environment.items():
        key = name.removeprefix("PIP_").lower().replace("_", "-")
        if name.startswith("PIP_") and key in _PIP:
            known[key] = value
    variables = {f"PIP_{key.upper().replace('-', '_')}": known[key] for key in known}
    return _bring({**variables, **_network(environment)}, {})


def written(environment: Mapping[str, str]) -> Iterator[str]:
    """
    The texts that configure pip and npm, in variables and in the files that both read.

    For callers that need the hosts in these texts before an installer is started.
    """
    home = environment.get("HOME", "")
    known = environment.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    shared = (environment.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep)
    for path in (
        *(os.path.join(folder, "pip", "pip.conf") for folder in (*shared, known)),
        *("/etc/pip.conf", os.path.join(home, ".pip", "pip.conf")),
        *(os.path.join(sys.prefix, "pip.conf"), environment.get("PIP_CONFIG_FILE", "")),
    ):
        with suppress(OSError, UnicodeDecodeError):
            yield Path(path).read_text("utf-8")
    npm = for_npm(environment)
    yield from (*npm.variables.values(), npm.files.get("npmrc", b"").decode())


def for_npm(environment: Mapping[str, str]) -> Configuration:
    """The settings of npm from the operator's `npmrc` files and environment, in one file."""
    home = environment.get("HOME", "")
    named = {name.lower(): value for name, value in environment.items()}
    rc: dict[str, str] = {}
    for file in (
        named.get("npm_config_globalconfig", ""),
        named.get("npm_config_userconfig") or os.path.join(home, ".npmrc"),
    ):
        rc.update(_npmrc(file, environment))
    for name, value in environment.items():
        if name.lower().startswith("npm_config_"):
            key = name[len("npm_config_") :]
            key = key if key.startswith(("//", "@", "_")) else key.lower().replace("_", "-")
            rc[key] = value
    rc = {key: value for key, value in rc.items() if _NPM.fullmatch(key) and "\n" not in value}
    registries = tuple(value for key, value in rc.items() if key.endswith("registry"))
    return _bring(_network(environment), rc, registries)


def _npmrc(path: str, environment: Mapping[str, str]) -> Mapping[str, str]:
    """The settings of a file, with variables expanded, or none if the file does not exist."""
    try:
        text = Path(path).read_text("utf-8") if path else ""
    except (OSError, UnicodeDecodeError):
        return {}
    found = {}
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals and not key.lstrip().startswith((";", "#")):
            value = _VARIABLE.sub(lambda one: environment.get(one[1], one[0]), value.strip())
            found[key.strip()] = value.strip("\"'")
    return found


def _network(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if _NETWORK.fullmatch(name)}


def _bring(
    variables: Mapping[str, str], rc: Mapping[str, str], registries: tuple[str, ...] = ()
) -> Configuration:
    """A configuration with the operator's files and folders at paths that an installer can read."""
    files: dict[str, bytes] = {}
    brought: list[str] = []

    def moved(value: str) -> str:
        return " ".join(map(_word, value.split())) if os.sep in value else value

    def _word(word: str) -> str:
        path = unquote(urlsplit(word).path) if word.startswith("file:") else word
        if os.path.isdir(path) and os.path.isabs(path) and not path.startswith("/etc/"):
            brought.append(os.path.realpath(path))
            return brought[-1]
        if os.path.isabs(path) and os.path.isfile(path) and os.path.getsize(path) <= _MOST:
            name = f"{len(files)}-{os.path.basename(path)}"
            files[name] = Path(path).read_bytes()
            return f"{HERE}/{name}"
        return word

    variables = {name: moved(value) for name, value in variables.items()}
    if rc:
        lines = [f"{key}={moved(value)}\n" for key, value in rc.items()]
        files["npmrc"] = "".join(lines).encode()
    return Configuration(variables, files, tuple(brought), registries)
