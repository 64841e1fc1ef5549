"""Reading responses: from bytes to the shape of the call, or to an error."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from wfcore_client.calls import ApiCall
from wfcore_client.errors import ServerTrouble, error_of
from wfcore_client.shapes import FINAL_EVENTS, EventView, Word

T = TypeVar("T")
_MALFORMED = (ValueError, TypeError, KeyError, AttributeError)


def read(call: ApiCall[T], status: int, headers: Mapping[str, str], content: bytes) -> T:
    """The answer to *call*. Raises `ApiError`."""
    check(status, headers, content)
    try:
        return shaped(call.returns, json.loads(content))
    except _MALFORMED as error:
        raise ServerTrouble(status, f"a response of another shape: {error!r}") from None


def check(status: int, headers: Mapping[str, str], content: bytes) -> None:
    """Raises the `ApiError` of a response that is no success."""
    if status < 400:
        return
    try:
        error = str(json.loads(content)["error"])
    except _MALFORMED:
        error = "a response that is not the API's"
    raise error_of(status, error, headers.get("retry-after"), headers.get("x-request-id"))


def shaped(shape: type[T], value: Any) -> T:
    """
    Decoded JSON as *shape*. Fields that a newer server adds are ignored.

    Raises `KeyError` for a missing field, `TypeError` or `AttributeError` for another structure.
    """
    kind: Any = shape
    made: T = _reader(kind)(value)
    return made


@cache
def _reader(kind: Any) -> Callable[[Any], Any]:
    """A function that reads a value of *kind* from decoded JSON."""
    if is_dataclass(kind):
        return _object(kind)
    if isinstance(kind, type) and issubclass(kind, Word):
        return kind
    origin, args = get_origin(kind), get_args(kind)
    if NoneType in args:
        inner = _reader(next(one for one in args if one is not NoneType))
        return lambda value: None if value is None else inner(value)
    if origin is Sequence:
        item = _reader(args[0])
        return lambda value: [item(one) for one in value]
    if origin is Mapping and args[1] is not Any:
        item = _reader(args[1])
        return lambda value: {key: item(one) for key, one in value.items()}
    return lambda value: value


def _object(shape: Any) -> Callable[[Any], Any]:
    hints = get_type_hints(shape)
    readers = [(one.name, _wire_name(one.name), _reader(hints[one.name])) for one in fields(shape)]
    optional = {one.name for one in fields(shape) if one.default is not MISSING}

    def read(value: Any) -> Any:
        return shape(
            **{
                name: reader(value[key])
                for name, key, reader in readers
                if key in value or name not in optional
            }
        )

    return read


def _wire_name(name: str) -> str:
    """`step_results` is `stepResults` in JSON."""
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


class EventReader:
    """
    Reads events from the lines of a stream.

    `last`: the number of the event to resume after. `over`: the terminal event was read.
    """

    def __init__(self, after: int = 0) -> None:
        self.last = after
        self.over = False
        self._fields: dict[str, str] = {}

    @property
    def headers(self) -> dict[str, str]:
        """
        The headers for a new connection; an event that was cut off is dropped and comes again.
        """
        self._fields = {}
        return {"Last-Event-ID": str(self.last)}

    def line(self, line: str) -> Iterator[EventView]:
        """The event that *line* completes: an empty line ends an event."""
        if line:
            name, _, value = line.partition(":")
            self._fields[name] = value.removeprefix(" ")
            return
        fields, self._fields = self._fields, {}
        if "data" in fields and fields.get("id", "").isdigit():
            self.last = int(fields["id"])
            event = shaped(EventView, json.loads(fields["data"]))
            self.over = event.kind in FINAL_EVENTS
            yield event
