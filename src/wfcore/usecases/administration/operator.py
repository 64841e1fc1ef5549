"""
Operations: the requests of the command line to the service, on its host or from elsewhere.

An operation is a function of an `Operator` and of named parameters; its answer is the document that
the command prints with `--json`. Each operation has one implementation: the command line calls it
beside the store, and `POST /api/admin/{operation}` calls it for a key of scope ADMIN. The
parameters follow from the signature. Decision 187.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Concatenate, ParamSpec, TypeAlias

import attrs
from attrs import frozen

from wfcore.errors import InvalidInput
from wfcore.model.json import JsonObject
from wfcore.model.workflow import Definition
from wfcore.usecases.audit.auditing import Origin
from wfcore.usecases.services import Services
from wfcore.wire.converter import plain, wire_name

P = ParamSpec("P")

AT_THE_COMMAND_LINE = Origin(path="command line")
"""The origin in the audit log of actions on the host."""


@frozen
class Operator:
    """
    An operator, with the means to operate. `origin`: names the operator if the operator is
    elsewhere. `base_url`: the URL of the service. `read`: reads a definition from its text.
    `serving`: whether a server works on the store, as far as is known.
    """

    services: Services
    read: Callable[[bytes], Definition]
    origin: Origin = AT_THE_COMMAND_LINE
    base_url: str = ""
    serving: bool | None = None
    warnings: Callable[[Definition], Sequence[str]] = lambda definition: ()

    @property
    def on_host(self) -> bool:
        """Whether the operator is on the host: the origin names no operator."""
        return self.origin.operator is None


Answer: TypeAlias = JsonObject
Operation: TypeAlias = Callable[Concatenate[Operator, P], Awaitable[Answer]]


@cache
def parameters_of(operation: Callable[..., Any]) -> type[Any]:
    """The parameters of *operation* as a class, for the bodies of requests."""
    fields = {
        one.name: attrs.field(
            type=one.annotation,
            default=attrs.NOTHING if one.default is inspect.Parameter.empty else one.default,
        )
        for one in list(inspect.signature(operation).parameters.values())[1:]
    }
    name = "".join(part.capitalize() for part in operation.__name__.split("_"))
    return attrs.make_class(f"{name}Parameters", fields, frozen=True, kw_only=True)


def given(parameters: Mapping[str, Any]) -> JsonObject:
    """*parameters* as the body of a request, without parameters that are None."""
    return {wire_name(name): plain(one) for name, one in parameters.items() if one is not None}


def shown(view: object) -> Answer:
    """*view* as a document."""
    document: Answer = plain(view)
    return document


def listed(views: Iterable[object], total: int | None = None) -> Answer:
    """A list; *total*: the number of all rows, if the list shows only a part."""
    items = [plain(view) for view in views]
    return {"items": items, "total": len(items) if total is None else total}


def checked_size(size: int) -> int:
    """Returns *size*. Raises `InvalidInput` unless a list may have that many rows."""
    if not 1 <= size <= MOST_LISTED:
        raise InvalidInput("limit", f"must be from 1 to {MOST_LISTED}")
    return size


MOST_LISTED = 10_000
