"""From an answer's bytes to the shape that was asked for, or to an error."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import attrs
from cattrs import Converter
from cattrs.gen import make_dict_structure_fn, override

from wfcore.model.event import EventKind
from wfcore.rules.execution.machine import EXECUTION
from wfcore.wire.converter import wire_name
from wfcore.wire.shapes import EventView
from wfcore_client.calls import Call
from wfcore_client.errors import ServerTrouble, error_of

T = TypeVar("T")


TERMINAL = frozenset(EventKind(f"execution.{status.lower()}") for status in EXECUTION.final)
RECONNECT_S = 1.0


def _reader(shape: type[Any], converter: Converter) -> Callable[[Mapping[str, Any], Any], Any]:
    """Camel case on the wire; a field that a newer server adds is let pass."""
    names = {one.name: override(rename=wire_name(one.name)) for one in attrs.fields(shape)}
    return make_dict_structure_fn(shape, converter, **names)  # type: ignore[arg-type]


_CONVERTER = Converter(detailed_validation=False)
_CONVERTER.register_structure_hook_factory(attrs.has, _reader)


def read(call: Call[T], status: int, headers: Mapping[str, str], content: bytes) -> T:
    """The answer to *call*. Raises `ApiError`."""
    check(status, headers, content)
    try:
        return _CONVERTER.structure(json.loads(content), call.returns)
    except (ValueError, TypeError, KeyError) as error:
        raise ServerTrouble(status, f"an answer of another shape: {error!r}") from None


def check(status: int, headers: Mapping[str, str], content: bytes) -> None:
    """Raises the `ApiError` that an answer stands for; nothing for a success."""
    if status < 400:
        return
    try:
        error = str(json.loads(content)["error"])
    except (ValueError, TypeError, KeyError):
        error = "an answer that is not the API's"
    raise error_of(status, error, headers.get("retry-after"))


class EventReader:
    """
    The events in the lines of a stream, as they come.

    `last` is the number to resume after; `over`: the terminal event was among them.
    """

    def __init__(self, after: int = 0) -> None:
        self.last = after
        self.over = False
        self._fields: dict[str, str] = {}

    def line(self, line: str) -> Iterator[EventView]:
        """What *line* completes: at an empty one, the event before it."""
        if line:
            name, _, value = line.partition(":")
            self._fields[name] = value.removeprefix(" ")
            return
        fields, self._fields = self._fields, {}
        if "data" in fields and fields.get("id", "").isdigit():
            self.last = int(fields["id"])
            event = _CONVERTER.structure(json.loads(fields["data"]), EventView)
            self.over = event.kind in TERMINAL
            yield event
