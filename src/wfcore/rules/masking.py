"""
Masking: values of secret variables never appear in anything that is shown.

A secret is found literally and in the forms that programs print: escaped for JSON, for a URL or for
a shell, and in base64. The base64 form of a text depends on which of three offsets it begins at,
because three bytes become four characters. Of each form, the characters that the secret alone
determines are searched for; the character before and the character after, which the secret shares
with its neighbours, are masked as well.

Output is bounded before it is masked, so a text may begin or end within a secret: `mask_cut` looks
for the rest of a secret at such an edge.

Each form is searched in each text: the secrets of an execution are bounded (SC-11), and only forms
whose beginning occurs in a text are searched. An automaton for all forms (Aho-Corasick) would take
a second and 80 MB to build for a secret of 8 KB.

Other transformations (hashing, encrypting, reversing, compressing) are not recognized: masking
protects against honest mistakes, not against a step that wants to disclose a secret.
"""

import json
import re
from base64 import b64encode
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from shlex import quote as shell_quoted
from urllib.parse import quote, quote_plus

from attrs import evolve, frozen

from wfcore.model.execution import Execution
from wfcore.model.json import Json
from wfcore.rules.limits import SECRET_VARIABLES_BYTES
from wfcore.rules.variables import compact

MASK = "***"
_SHORTEST = 4
"""
The length of the shortest secret that is masked inside other text. A shorter secret would mask half
the alphabet, and is masked only where it stands alone. SC-3.
"""
_FEW = 100
"""The number of forms up to which single searches are faster."""
_URL_SAFE = ("", "/", "!*'()~", ";/?:@&=+$,#!*'()~")
"""The characters that encoders leave unescaped: none, paths, JavaScript's component, its URI."""
_PLAIN = re.compile(r"[A-Za-z0-9_.-]*")
"""Texts that no writer escapes."""
_SHELL_SPECIAL = (
    re.compile(r"([^\w@%+=:,./-])"),
    re.compile(r"([ !\"$&'()*,;<>?\[\\\]^`{|}]|^[#~])"),  # as Bash's %q has it
)
_DOUBLE_QUOTED = re.compile(r'([$`"\\!])')
_UNICODE_ESCAPE = re.compile(r"\\u[0-9a-f]{4}")
_PERCENT_ESCAPE = re.compile("%[0-9A-F]{2}")
_IN_HTML = ("<>&", "<>&='")
"""
The characters that JSON writers escape for use inside pages: the set of Go and most others, and the
set of Java.
"""
_BASE64 = "[A-Za-z0-9+/_-]"


@frozen(repr=False)
class Secrets:
    """
    The secrets to mask: `alone` if a whole text or value equals one, `inside` anywhere in a text,
    longest first, `base64` with the adjacent characters. False if there are no secrets.
    """

    alone: frozenset[str] = frozenset()
    inside: tuple[str, ...] = ()
    base64: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.alone)


NO_SECRETS = Secrets()


def secret_values(run: Execution, also: Collection[str] = ()) -> Secrets:
    """
    The secrets to mask in everything that is shown of *run*: its own secrets, and the texts *also*.
    SC-1, SC-2.
    """
    if not (run.secrets or also):
        return NO_SECRETS
    found = (text for name in run.secrets for text in _texts(run.variables.get(name)))
    return secrets_of((*also, *found))


def secrets_of(texts: Iterable[str]) -> Secrets:
    """The secrets to mask if *texts* are secret."""
    found = frozenset(text for text in texts if text)
    kept = sum(map(len, found)) <= SECRET_VARIABLES_BYTES
    return _forms(found) if kept else _forms.__wrapped__(found)


@lru_cache(maxsize=16)
def _forms(found: frozenset[str]) -> Secrets:
    """
    The secrets to mask for the texts *found*. Results are cached, because every row of a list and
    every line of a step needs the same secrets.
    """
    alone = found | {form for text in found for form in _written(text)}
    encoded = {core for text in found for core in _base64_cores(text)}
    return Secrets(frozenset(alone), _by_length(alone), _by_length(encoded))


def _by_length(texts: Iterable[str]) -> tuple[str, ...]:
    fit = (text for text in texts if len(text) >= _SHORTEST)
    return tuple(sorted(fit, key=lambda text: (-len(text), text)))


def texts_of(values: Iterable[Json]) -> Iterator[str]:
    """The texts to mask if all *values* are secret."""
    for value in values:
        yield from _texts(value)


def _texts(value: Json) -> Iterator[str]:
    """The texts of a secret; for an object or array, every text and number inside."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from (compact(value) if value else "", *_inside(value.values()))
    elif isinstance(value, list | tuple):
        yield from (compact(value) if value else "", *_inside(value))
    elif value is not None:
        yield compact(value)


def _inside(values: Iterable[Json]) -> Iterator[str]:
    """
    The texts to mask inside other texts. true and false are left out: masked everywhere, they would
    hide too much.
    """
    for value in values:
        if not isinstance(value, bool):
            yield from _texts(value)


def _written(text: str) -> Iterator[str]:
    """The other forms of a text: line by line, or escaped for JSON, a URL or a shell."""
    yield from (line for line in text.splitlines() if len(line) >= _SHORTEST)
    if not _PLAIN.fullmatch(text):
        yield from _json_forms(text)
        yield from _url_forms(text)
        yield from _shell_forms(text)
    every_byte = "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "surrogatepass"))
    yield from (every_byte, every_byte.lower())


def _json_forms(text: str) -> Iterator[str]:
    r"""
    The JSON forms of a text: with or without escapes beyond ASCII, with `\/`, safe inside HTML, and
    each of these forms escaped once more.
    """
    for ascii_only in (True, False):
        once = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
        for form in (once, once.replace("/", "\\/"), *(_html_safe(once, one) for one in _IN_HTML)):
            yield from (form, json.dumps(form, ensure_ascii=ascii_only)[1:-1])
            yield _UNICODE_ESCAPE.sub(lambda one: "\\u" + one[0][2:].upper(), form)
    yield repr(text)[1:-1]


def _html_safe(text: str, escaped: str) -> str:
    return "".join(f"\\u{ord(char):04x}" if char in escaped else char for char in text)


def _url_forms(text: str) -> Iterator[str]:
    data = text.encode("utf-8", "surrogatepass")
    for form in (*(quote(data, safe=safe) for safe in _URL_SAFE), quote_plus(data)):
        yield from (form, _PERCENT_ESCAPE.sub(lambda one: one[0].lower(), form))


def _shell_forms(text: str) -> Iterator[str]:
    """The shell forms of a text: in single or double quotes, with backslashes, as Bash's `$'…'`."""
    yield shell_quoted(text).strip("'")
    yield text.replace("'", "'\\''")
    yield _DOUBLE_QUOTED.sub(r"\\\1", text)
    yield from (special.sub(r"\\\1", text) for special in _SHELL_SPECIAL)
    yield text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\t", "\\t")


def _base64_cores(text: str) -> Iterator[str]:
    """
    For each offset, the characters of the base64 form that do not depend on the text's neighbours.
    """
    data = text.encode("utf-8", "surrogatepass")
    for offset in range(3):
        whole = b64encode(bytes(offset) + data).decode()
        core = whole[(8 * offset + 5) // 6 : 8 * (offset + len(data)) // 6]
        yield from (core, core.replace("+", "-").replace("/", "_"))


def mask_text(text: str, secrets: Secrets) -> str:
    """*text* with every secret replaced."""
    if text in secrets.alone:
        return MASK
    if secrets.inside or secrets.base64:
        found = _occurring(text, secrets)
        for secret in found.inside:
            text = text.replace(secret, MASK)
        for core in found.base64:
            text = re.sub(f"{_BASE64}?{re.escape(core)}{_BASE64}?=*", MASK, text)
    return text


def mask_cut(text: str, secrets: Secrets, *, start: bool = False, end: bool = False) -> str:
    """
    *text* with every secret replaced, even one that was cut in the middle: at the *start* of the
    text also the rest of a secret, at its *end* also the beginning of one. Up to three characters
    of a secret cannot be told from other text, and remain.
    """
    text = mask_text(text, secrets)
    forms = (*secrets.inside, *secrets.base64)
    if start and (rest := max((_rest_at_start(text, one) for one in forms), default=0)):
        text = MASK + text[rest:]
    if end and (begun := max((_begun_at_end(text, one) for one in forms), default=0)):
        text = text[:-begun] + MASK
    return text


def mask_shortened(text: str, secrets: Secrets) -> str:
    """As `mask_cut`, for a text whose beginning may have been replaced by `…`."""
    head, cut, tail = text.partition("…")
    if not cut:
        return mask_text(text, secrets)
    return f"{mask_text(head, secrets)}{cut}{mask_cut(tail, secrets, start=True)}"


def _rest_at_start(text: str, secret: str) -> int:
    """The length of the longest suffix of *secret* that *text* starts with."""
    return _overlap(secret[1:], text)


def _begun_at_end(text: str, secret: str) -> int:
    """The length of the longest prefix of *secret* that *text* ends with."""
    return _overlap(text, secret[:-1])


def _overlap(first: str, second: str) -> int:
    """
    The length of the longest end of *first* with which *second* begins; 0 if it is too short to be
    recognized. By Knuth, Morris and Pratt: each character is read a few times, however often it
    repeats.
    """
    if len(second) < _SHORTEST or second[:_SHORTEST] not in first:
        return 0
    first, second = first[-len(second) :], second[: len(first)]
    shorter, length = [0], 0
    for char in second[1:]:
        length = _longer(second, shorter, length, char)
        shorter.append(length)
    length = 0
    for char in first:
        length = _longer(second, shorter, length, char)
    return length if length >= _SHORTEST else 0


def _longer(text: str, shorter: Sequence[int], length: int, char: str) -> int:
    """
    The length of the beginning of *text* that continues with *char*. *shorter*: the lengths within
    it.
    """
    while length and text[length] != char:
        length = shorter[length - 1]
    return length + (text[length] == char)


def _occurring(text: str, secrets: Secrets) -> Secrets:
    """The secrets that occur in *text*."""
    inside = tuple(one for one in _begun(text, secrets.inside) if one in text)
    base64 = tuple(one for one in _begun(text, secrets.base64) if one in text)
    return evolve(secrets, inside=inside, base64=base64)


def _begun(text: str, forms: Sequence[str]) -> Sequence[str]:
    """The forms whose first characters occur in *text*, found in one pass over the text."""
    if len(forms) <= _FEW:
        return forms
    starts = {form[:_SHORTEST] for form in forms}
    parts = (text[at : at + _SHORTEST] for at in range(len(text) - _SHORTEST + 1))
    found = {part for part in parts if part in starts}
    return [form for form in forms if form[:_SHORTEST] in found]


def mask(value: Json, secrets: Secrets) -> Json:
    """*value* with every secret replaced in all its strings, including keys. SC-1."""
    if not secrets:
        return value
    leaves = list(_leaves(value))
    found = _occurring("\0".join(leaves), secrets)
    if not (found.inside or found.base64) and secrets.alone.isdisjoint(leaves):
        return value
    return _masked(value, found)


def _leaves(value: Json) -> Iterator[str]:
    """All texts, keys and scalars in a value, as they would be shown."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from value
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    else:
        yield compact(value)


def _masked(value: Json, secrets: Secrets) -> Json:
    if isinstance(value, str):
        return mask_text(value, secrets)
    if isinstance(value, Mapping):
        return {mask_text(key, secrets): _masked(item, secrets) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(item, secrets) for item in value]
    return MASK if compact(value) in secrets.alone else value
