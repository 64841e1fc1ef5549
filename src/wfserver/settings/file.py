"""
Settings from a file.

The file is TOML with the names of the environment's variables, so that each setting has one
spelling. With lines like `WFCORE_PORT=9000` it is an `EnvironmentFile` of systemd as well. The
environment wins over the file, and the command line over both.
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
    """
    Raised for a setting that cannot be used. `fix` may have further lines, each for another
    setting.
    """

    exit_status: ClassVar[int] = 2


OF_PROVIDERS = {f"{name.upper()}_{what}" for name in DEFAULTS for what in ("API_KEY", "BASE_URL")}


def with_file(environment: Mapping[str, str], file: str | None = None) -> ChainMap[str, str]:
    """
    *environment* over the settings in *file*, or in the file that *environment* names. Raises
    `WrongSetting` for a file that cannot be read.
    """
    named = file or environment.get(FILE)
    if not named:
        return ChainMap(dict(environment))
    path = Path(named).absolute()
    return ChainMap({**environment, FILE: str(path)}, dict(read_settings(path)))


def read_settings(path: Path) -> Mapping[str, str]:
    """
    The settings in the file *path*, by variable, with values as the environment has them.

    Raises `WrongSetting` if the file cannot be read, is not TOML, has a value of a wrong type, or
    holds a secret that everybody may read. Whether each setting exists is checked later.
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
    """Whether *name* is a variable whose value is never shown."""
    known = KNOWN.get(name)
    return known.secret if known else name.endswith("_API_KEY") or is_of_a_channel(name)
