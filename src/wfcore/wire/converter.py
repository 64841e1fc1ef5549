"""
Conversion between attrs classes and JSON values: camel case on the wire, nothing is coerced.

`plain` turns a view into a dict that can be encoded. `structured` turns a request body into a
class; it refuses unknown fields and values of the wrong type by name.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from types import NoneType
from typing import Annotated, Any, TypeVar, get_args, get_origin

import attrs
from cattrs import Converter
from cattrs.errors import (
    AttributeValidationNote,
    BaseValidationError,
    ClassValidationError,
    ForbiddenExtraKeysError,
    IterableValidationNote,
)
from cattrs.fns import identity
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from wfcore.errors import InvalidInput
from wfcore.model.access import AccountStatus, Permission, Scope, Tier
from wfcore.model.approval import ApprovalStatus, Verdict
from wfcore.model.execution import ExecutionStatus, TriggerSource
from wfcore.model.json import JsonObject
from wfcore.model.notice import NoticeStatus
from wfcore.model.webhook import Scheme, WebhookStatus
from wfcore.rules.limits import MAX_COMMENT
from wfcore.rules.variables import NO_NUL
from wfcore.wire.requests import Comment, DefinitionChoice

T = TypeVar("T")
_NAME_SHOWN = 80
LARGEST_NUMBER = 2**53 - 1
"""What every program reads exactly (RFC 8259, section 6); every store can look for it."""


def wire_name(name: str) -> str:
    """`step_results` is `stepResults` on the wire."""
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


_OUT = Converter()


def plain(view: object) -> Any:
    """*view* as dicts, lists and JSON primitives (enums stay enums of strings)."""
    return _OUT.unstructure(view, type(view))


def _is_ready(annotation: Any) -> bool:
    """Whether values of this annotation can be encoded as they are."""
    if annotation in (Any, str, int, float, bool, NoneType) or get_origin(annotation) is Annotated:
        return True
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return True
    return bool(get_args(annotation)) and all(map(_is_ready, get_args(annotation)))


def _writer(shape: type[Any], converter: Converter) -> Callable[[Any], Any]:
    overrides = {
        one.name: override(
            rename=wire_name(one.name),
            unstruct_hook=identity if _is_ready(one.type) else None,
            omit_if_default=bool(one.metadata.get("absent")),
        )
        for one in attrs.fields(shape)
    }
    return make_dict_unstructure_fn(shape, converter, **overrides)  # type: ignore[arg-type]


_OUT.register_unstructure_hook_factory(attrs.has, _writer)


class _Wrong(ValueError):
    """A value has the wrong type; the message says what is expected."""


def structured(shape: type[T], body: JsonObject) -> T:
    """
    The request body as *shape*.

    Raises `InvalidInput` that names the field: unknown (with the known ones), missing, or of the
    wrong type. "no" is not false, and 1 is not true.
    """
    try:
        return _IN.structure(body, shape)
    except ClassValidationError as refused:
        raise _named(refused) from None


def _named(refused: BaseValidationError, where: str = "") -> InvalidInput:
    """The first thing that is wrong, by its path: `decisions[3].decision`."""
    within = f"{where}." if where else ""
    for error in refused.exceptions:
        if isinstance(error, ForbiddenExtraKeysError):
            known = ", ".join(wire_name(one.name) for one in attrs.fields(error.cl)) or "none"
            unknown = min(error.extra_fields)[:_NAME_SHOWN]
            return InvalidInput(within + unknown, f"unknown field; the known ones are: {known}")
    error = refused.exceptions[0]
    field = where or "body"
    for note in getattr(error, "__notes__", ()):
        if isinstance(note, AttributeValidationNote):
            field = within + wire_name(note.name)
        elif isinstance(note, IterableValidationNote):
            field = f"{where}[{note.index}]"
    if isinstance(error, BaseValidationError):
        return _named(error, field)
    return InvalidInput(field, str(error) if isinstance(error, _Wrong) else "is required")


def sent(body: Any, raw: JsonObject) -> dict[str, Any]:
    """The fields of *body* that were present in the request, by attribute name."""
    return {
        one.name: getattr(body, one.name)
        for one in attrs.fields(type(body))
        if wire_name(one.name) in raw
    }


def _reader(shape: type[Any], converter: Converter) -> Callable[[Mapping[str, Any], Any], Any]:
    overrides = {
        one.name: override(
            rename=wire_name(one.name),
            struct_hook=_not_null(one.type, converter) if one.metadata.get("not_null") else None,
        )
        for one in attrs.fields(shape)
    }
    return make_dict_structure_fn(
        shape,
        converter,
        _cattrs_forbid_extra_keys=True,
        **overrides,  # type: ignore[arg-type]
    )


def _not_null(annotation: Any, converter: Converter) -> Callable[[Any, Any], Any]:
    """The hook of `X | None` for values that are not null."""
    kind = next(one for one in get_args(annotation) if one is not NoneType)
    hook = converter.get_structure_hook(kind)
    return lambda value, _: hook(value, kind)


def _strict(kind: type[Any], wanted: str) -> Callable[[Any, Any], Any]:
    def check(value: Any, _: Any) -> Any:
        if type(value) is not kind:
            raise _Wrong(f"must be {wanted}")
        if kind is str and "\0" in value:
            raise _Wrong(NO_NUL)
        if kind is int and abs(value) > LARGEST_NUMBER:
            raise _Wrong(f"must be a whole number of at most {LARGEST_NUMBER}")
        return value

    return check


def _comment(value: Any, _: Any) -> Any:
    if type(value) is not str or len(value) > MAX_COMMENT:
        raise _Wrong(f"must be a string of at most {MAX_COMMENT} characters")
    if "\0" in value:
        raise _Wrong(NO_NUL)
    return value


def _member(value: Any, kind: type[Enum]) -> Enum:
    for member in kind:
        if value == member.value:
            return member
    raise _Wrong(f"must be {' or '.join(str(member.value) for member in kind)}")


def _verdict(value: Any, kind: type[Verdict]) -> Enum:
    """`approve` or `reject`, whatever the case. AP-11."""
    return _member(value.lower() if isinstance(value, str) else value, kind)


def _is_object(annotation: Any) -> bool:
    return get_origin(annotation) is Mapping


def _object(value: Any, _: Any) -> Any:
    if not isinstance(value, dict):
        raise _Wrong("must be an object")
    return value


def _is_list(annotation: Any) -> bool:
    return get_origin(annotation) is Sequence


def _list(annotation: Any, converter: Converter) -> Callable[[Any, Any], Any]:
    (kind,) = get_args(annotation)

    def read(value: Any, _: Any) -> Any:
        if not isinstance(value, list):
            raise _Wrong("must be an array")
        return converter.structure(value, list[kind])  # type: ignore[valid-type]

    return read


def _of_objects(shape: type[Any], converter: Converter) -> Callable[[Any, Any], Any]:
    read = _reader(shape, converter)
    return lambda value, _: read(_object(value, _), shape)


_IN = Converter(detailed_validation=True)
_IN.register_structure_hook_factory(attrs.has, _of_objects)
_IN.register_structure_hook_factory(_is_list, _list)
_IN.register_structure_hook(str, _strict(str, "a string"))
_IN.register_structure_hook(bool, _strict(bool, "true or false"))
_IN.register_structure_hook(int, _strict(int, "a whole number"))
_IN.register_structure_hook(Comment, _comment)
for _kind in (
    AccountStatus,
    ApprovalStatus,
    DefinitionChoice,
    ExecutionStatus,
    NoticeStatus,
    Permission,
    Tier,
    Scheme,
    Scope,
    TriggerSource,
    WebhookStatus,
):  # by name: a text enum counts as `str` otherwise
    _IN.register_structure_hook(_kind, _member)
_IN.register_structure_hook(Verdict, _verdict)
_IN.register_structure_hook_func(_is_object, _object)
