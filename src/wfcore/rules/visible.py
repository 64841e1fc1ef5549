"""
Text of callers and workflows as people see it: without characters that turn the direction of other
text, and without invisible characters. The stored and released text stays unchanged.
"""

import re
from typing import TypeVar

T = TypeVar("T")

NO_HALVES = "half a surrogate pair is no character"

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff0-\ufffb\U000e0000-\U000e007f]"
)
"""
Control and format characters, except tabs and line ends. The two joiners stay: Persian, the scripts
of India and emoji are spelt with them. `values.js` has the same list.
"""


def is_text(value: str) -> bool:
    """Whether *value* is Unicode text that UTF-8 can hold: no half of a surrogate pair."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def visible(text: str) -> str:
    """*text* with a replacement character for each invisible one."""
    if text.isprintable():
        return text
    return _UNSEEN.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def visible_name(text: str) -> str:
    """*text* as `visible`, in one line: its tabs and line ends are replaced as well."""
    return re.sub("[\t\n\r]", "\N{REPLACEMENT CHARACTER}", visible(text))


def is_blank(value: object) -> bool:
    """
    Whether *value* is empty for people: null, or a text without a visible character. Joiners alone
    are invisible. false, 0, `[]` and `{}` are values. AP-40.
    """
    if not isinstance(value, str):
        return value is None
    return not _UNSEEN.sub("", value).translate(_JOINERS).strip()


_JOINERS = {0x200C: None, 0x200D: None}


def shown(value: T) -> T:
    """
    *value* as a template shows it: a text, marked as HTML or not, without invisible characters;
    other values unchanged.
    """
    return type(value)(visible(value)) if isinstance(value, str) else value
