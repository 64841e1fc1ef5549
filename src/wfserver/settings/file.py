"""
Settings from a file.

It is TOML whose names are those of the environment's variables, so that there is one list of
settings and one spelling of each. Written as `WFCORE_PORT=9000`, it is an `EnvironmentFile` of
systemd as well. The environment wins over the file, and the command line over both.
"""

from collections import ChainMap
from collections.abc import Mapping
from pathlib import Path
from stat import S_IROTH
from typing import Any, ClassVar

from attrs import define

from adapters_runtime.ai.providers import DEFAULTS
from wfcore.errors import InvalidInput
from wfserver.settings.channels import is_of_a_channel
from wfserver.settings.table import KNOWN

FILE = "WFCORE_SETTINGS"


@define
class WrongSetting(InvalidInput):
    """A setting that cannot be used; `fix` may name further ones, each on a line of its own."""

    exit_status: ClassVar[int] = 2


OF_PROVIDERS = {f"{name.upper()}_{what}" for name in DEFAULTS for what in ("API_KEY", "BASE_URL")}


def with_file(environment: Mapping[str, str], file: str | None = None) -> ChainMap[str, str]:
    """
    *environment* over what *file* says, or the file that it names. Raises `WrongSetting` for a file
    that cannot be read.
    """
    named = file or environment.get(FILE)
    if not named:
        return ChainMap(dict(environment))
    path = Path(named).absolute()
    return ChainMap({**environment, FILE: str(path)}, dict(read_settings(path)))


def read_settings(path: Path) -> Mapping[str, str]:
    """
    The settings in the file *path*, as the environment would say them.

    Raises `WrongSetting`: it cannot be read, is not TOML, says what no setting can be, or holds a
    secret that everybody may read. Whether there is such a setting is asked later, of all at once.
    """
    try:
        content, mode = path.read_text(), path.stat().st_mode
    except OSError as error:
        raise WrongSetting(FILE, f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise WrongSetting(FILE, f"{path} is not UTF-8") from None
    import tomllib  # only where there is such a file

    try:
        found = tomllib.loads(content)
    except tomllib.TOMLDecodeError as error:
        raise WrongSetting(FILE, f"{path} is not TOML: {error}") from None
    texts = {name: _text(path, name, value) for name, value in found.items()}
    secret = next(filter(is_secret, texts), None)
    if secret is not None and mode & S_IROTH:
        fix = f"{path} holds {secret}, and everybody may read it: chmod o-r {path}"
        raise WrongSetting(FILE, fix)
    return texts


def _text(path: Path, name: str, value: Any) -> str:
    if name == FILE or not (name.startswith("WFCORE_") or name in OF_PROVIDERS):
        fix = f"{path} says {name}, which is no setting; names are like WFCORE_PORT"
        raise WrongSetting(FILE, fix)
    if isinstance(value, bool):
        return str(int(value))
    if not isinstance(value, str | int):
        raise WrongSetting(name, f"must be a text, a whole number, true or false in {path}")
    return str(value)


def is_secret(name: str) -> bool:
    """Whether the value of a variable is never shown."""
    known = KNOWN.get(name)
    return known.secret if known else name.endswith("_API_KEY") or is_of_a_channel(name)
