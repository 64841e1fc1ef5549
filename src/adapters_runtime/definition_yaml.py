"""
The reader of a definition's text (YAML 1.2, and so JSON) into a document with line numbers.

`wfcore.rules.definition.check` makes records of the document.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml
from attrs import define, evolve, field
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from wfcore.errors import InvalidDefinition, Problem
from wfcore.model.json import Json, fits
from wfcore.rules.limits import JSON_DEPTH, SOURCE_BYTES
from wfcore.rules.numbers import Rounded, decimal_of
from wfcore.rules.paths import below, line_of

Lines = Mapping[str, int]
"""Line numbers (from 1) by path, in the notation of `Problem.path`."""


def load_definition_text(text: bytes | str, source: str) -> tuple[Json, Lines]:
    """
    The document in *text*, and the line of each of its fields.

    Raises `InvalidDefinition` with line numbers. *source* is the name of the file, for messages.
    """
    reader = _Reader()
    try:
        document = reader.document(_decoded(text))
    except _Unreadable as error:
        reader.problems.append(error.problem)
        document = None
    if reader.problems:
        raise InvalidDefinition(tuple(reader.problems), source)
    return document, reader.lines


def with_lines(error: InvalidDefinition, lines: Lines, source: str) -> InvalidDefinition:
    """
    *error* with line numbers: each mistake has the line of its field, or of the object that lacks
    the field.
    """
    return InvalidDefinition(
        tuple(evolve(problem, line=line_of(problem.path, lines)) for problem in error.problems),
        source,
    )


class _Unreadable(Exception):
    """Raised for a mistake after which the reader cannot continue."""

    def __init__(self, message: str, line: int = 1, path: str = "") -> None:
        super().__init__(message)
        self.problem = Problem(path, message, line)


def _decoded(text: bytes | str) -> str:
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    if len(data) > SOURCE_BYTES:
        raise _Unreadable(f"the text is over {SOURCE_BYTES // 1_024} KiB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _Unreadable("the text is not UTF-8", line) from None


class _Loader(yaml.SafeLoader):
    """PyYAML's scanner and parser, with tabs allowed where JSON allows them."""

    def scan_to_next_token(self) -> None:
        super().scan_to_next_token()
        while self.flow_level and self.peek() == "\t":
            while self.peek() == "\t":
                self.forward()
            super().scan_to_next_token()


_QUOTE = 'a template needs quotes around it: "{{ … }}"'
_BARE = re.compile(r"\s*(?:- +)*(?:[^\s:#]+: +)?\{\{")


def _events(text: str) -> Iterator[Any]:
    """The events of *text*, with PyYAML's errors converted to ours."""
    try:
        loader = _Loader(text)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        message = f"character U+{int(error.character):04X} is not allowed"
        raise _Unreadable(message, line) from None
    try:
        while loader.check_event():
            yield loader.get_event()  # type: ignore[no-untyped-call]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = ", ".join(part for part in (error.context, error.problem) if part)
        at = mark.line if mark else 0
        bare = _BARE.match(text.split("\n")[at])
        raise _Unreadable(_QUOTE if bare else message, at + 1) from None
    except (ValueError, OverflowError):
        # PyYAML passes "\UFFFFFFFF" to chr(), and a long %YAML version to int().
        raise _Unreadable("a number here is too large", loader.line + 1) from None


@define
class _Reader:
    """The reader of events into a document, which continues after most mistakes."""

    lines: dict[str, int] = field(factory=dict)
    problems: list[Problem] = field(factory=list)
    events: Iterator[Any] = field(factory=lambda: iter(()))
    anchored: dict[str, Json] = field(factory=dict)
    left: int = SOURCE_BYTES
    """How many characters further aliases may add."""

    def document(self, text: str) -> Json:
        """The single document of *text*, an object."""
        self.events = _events(text)
        next(self.events)  # the stream's start
        if not isinstance(next(self.events), DocumentStartEvent):
            raise _Unreadable("the text is empty")
        start = next(self.events)
        if not isinstance(start, MappingStartEvent):
            raise _Unreadable("the text must be an object: name, steps, …", _at(start))
        document = self.node(start, "", 1)
        next(self.events)  # the document's end
        after = next(self.events)
        if isinstance(after, DocumentStartEvent):
            raise _Unreadable("only one document may be in the text", _at(after))
        return document

    def node(self, event: Any, path: str, depth: int) -> Json:
        """The value that begins with *event*."""
        self.lines.setdefault(path, _at(event))
        if depth > JSON_DEPTH:
            raise _Unreadable(f"is nested deeper than {JSON_DEPTH}", _at(event), path)
        if isinstance(event, AliasEvent):
            return self.alias(event, path, depth)
        if event.tag is not None:
            self.wrong(event, path, f"tags ({event.tag}) are not allowed")
        value = self.value(event, path, depth)
        if event.anchor is not None:
            self.anchored[event.anchor] = value
        return value

    def value(self, event: Any, path: str, depth: int) -> Json:
        if isinstance(event, ScalarEvent):
            return self.scalar(event, path)
        if isinstance(event, SequenceStartEvent):
            return self.sequence(path, depth)
        return self.mapping(path, depth)

    def alias(self, event: AliasEvent, path: str, depth: int) -> Json:
        """The value at the alias's anchor, checked as if it were written out here."""
        if event.anchor not in self.anchored:
            self.wrong(event, path, f"*{event.anchor}: no &{event.anchor} has ended before it")
            return None
        value = self.anchored[event.anchor]
        size, height = _extent(value)
        self.left -= size
        if self.left < 0:
            message = f"written out, the aliases make more than {SOURCE_BYTES // 1_024} KiB"
            raise _Unreadable(message, _at(event), path)
        if depth + height > JSON_DEPTH + 1:
            raise _Unreadable(f"is nested deeper than {JSON_DEPTH}", _at(event), path)
        return value

    def wrong(self, event: Any, path: str, message: str) -> None:
        self.problems.append(Problem(path, message, _at(event)))

    def scalar(self, event: ScalarEvent, path: str) -> Json:
        if event.style is not None:
            return self.text(event, path)
        try:
            return plain_scalar(event.value)
        except ValueError as error:
            self.wrong(event, path, str(error))
            return None

    def text(self, event: ScalarEvent, path: str) -> str:
        """The value of quoted text. Two escapes may make one character, as in JSON."""
        try:
            return event.value.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            self.wrong(event, path, "half a surrogate pair is no character")
            return ""

    def sequence(self, path: str, depth: int) -> Json:
        items: list[Json] = []
        while not isinstance(event := next(self.events), SequenceEndEvent):
            items.append(self.node(event, below(path, len(items)), depth + 1))
        return items

    def mapping(self, path: str, depth: int) -> Json:
        found: dict[str, Json] = {}
        while not isinstance(event := next(self.events), MappingEndEvent):
            key = self.key(event, path)
            where = below(path, key)
            if key in found:
                self.wrong(event, where, f"repeats the key of line {self.lines[where]}")
            if key == "<<" and event.style is None:
                self.wrong(event, where, "fields are not merged (<<); write them out")
            self.lines.setdefault(where, _at(event))
            found[key] = self.node(next(self.events), where, depth + 1)
        return found

    def key(self, event: Any, path: str) -> str:
        if isinstance(event, MappingStartEvent) and event.flow_style:
            raise _Unreadable(_QUOTE, _at(event), path)
        if not isinstance(event, ScalarEvent):
            raise _Unreadable("a key must be text", _at(event), path)
        key = self.node(event, path, 0)
        if not isinstance(key, str):
            self.wrong(event, path, f"the key {event.value} must be text; quote it")
        return key if isinstance(key, str) else str(event.value)


def _extent(value: Json) -> tuple[int, int]:
    """The size of *value*, in characters plus one for each value in it, and its depth."""
    size, height, level = 0, 0, [value]
    while level:
        height += 1
        size += sum(1 + len(one) for one in level if isinstance(one, str)) + len(level)
        level = [inner for one in level for inner in _inner(one)]
    return size, height


def _inner(value: Json) -> list[Json]:
    if isinstance(value, Mapping):
        return [*value, *value.values()]
    return list(value) if isinstance(value, list | tuple) else []


def _at(event: Any) -> int:
    return int(event.start_mark.line) + 1


_CONSTANTS: dict[str, Json] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?[0-9]+")
_OCTAL = re.compile(r"0o[0-7]+")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NO_JSON = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_LONGEST_NUMBER = 1_000


def plain_scalar(text: str) -> Json:
    """
    The value of an unquoted *text*.

    Raises `ValueError`, with a message for the author, for a number that cannot be stored exactly.
    """
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _NO_JSON.fullmatch(text):
        raise ValueError(f"{text} is no number in JSON; quote it if it is text")
    for form, base in ((_INTEGER, 10), (_OCTAL, 8), (_HEXADECIMAL, 16)):
        if form.fullmatch(text):
            return _integer(text, base)
    return _float(text) if _FLOAT.fullmatch(text) else text


def _integer(text: str, base: int) -> int:
    digits = text if base == 10 else text[2:]
    value = int(digits, base) if len(digits) <= _LONGEST_NUMBER else 2**64
    if not fits(value):
        raise ValueError("the number does not fit 64 bits; quote it if it is text")
    return value


def _float(text: str) -> float:
    value = decimal_of(text)
    if isinstance(value, int):
        raise ValueError("the number is too large; quote it if it is text")
    if isinstance(value, Rounded):
        raise ValueError(f"the number would become {value!r}; write that, or quote it")
    return value
