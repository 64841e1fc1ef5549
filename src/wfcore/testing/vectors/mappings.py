"""Vectors of variables: from payloads and inputs into an execution, and on into a code step."""

from typing import Any

from wfcore.errors import InvalidInput
from wfcore.model.workflow import Definition, Variable, VariableType
from wfcore.rules.variables import bind, environment, map_payload

ABOUT = "Workflow variables: what becomes of a webhook's payload, of inputs, and in a code step."
PAYLOAD = {
    "order": "A-1",
    "amount": 12.5,
    "count": 0,
    "express": False,
    "note": None,
    "empty": "",
    "customer": {"name": "Ann"},
    "rows": [1, 2],
}


def _mapped(mapping: Any, payload: Any = PAYLOAD) -> dict[str, Any]:
    return {"payload": payload, "mapping": mapping}


PAYLOADS = {
    "without a mapping": _mapped(None),
    "an empty payload": _mapped(None, {}),
    "with a mapping": _mapped({"order_id": "order", "total": "amount"}),
    "a mapped object or list is taken whole": _mapped({"who": "customer", "lines": "rows"}),
    "a mapped null is a value": _mapped({"remark": "note"}),
    "a missing field sets nothing": _mapped({"order_id": "order", "gone": "no such field"}),
    "a path is a field name like any other": _mapped({"name": "customer.name"}),
    "a field with a dot in its name": _mapped({"name": "a.b"}, {"a.b": 1, "a": {"b": 2}}),
    "an empty mapping maps nothing": _mapped({}),
}
DECLARED = {
    "order": {"type": "string", "required": True},
    "limit": {"type": "number", "default": 100},
    "express": {"type": "boolean", "default": False},
    "extra": {"type": "object"},
    "rows": {"type": "array"},
}


def _given(**inputs: Any) -> dict[str, Any]:
    return {"variables": DECLARED, "inputs": inputs}


INPUTS = {
    "the required one alone": _given(order="A-1"),
    "inputs go over defaults": _given(order="A-1", limit=7, express=True),
    "a default may be overwritten by 0 and false": _given(order="A-1", limit=0, express=False),
    "undeclared ones are accepted": _given(order="A-1", more=[1, {"a": None}]),
    "objects and arrays": _given(order="A-1", extra={"a": 1}, rows=[1, "b"]),
    "an empty text is a value": _given(order=""),
    "nothing": _given(),
    "null is no value": _given(order=None),
    "a number for a string": _given(order=1),
    "true is no number": _given(order="A-1", limit=True),
    "a text is no number": _given(order="A-1", limit="7"),
    "a number is no boolean": _given(order="A-1", express=1),
    "an array is no object": _given(order="A-1", extra=[]),
    "null for a declared one": _given(order="A-1", limit=None),
}
ENVIRONMENTS = {
    "strings as they are, everything else as JSON": {
        "variables": {
            "text": "ü ✓ $HOME 'x'",
            "empty": "",
            "number": 1.5,
            "whole": 7,
            "yes": True,
            "none": None,
            "rows": [1, {"a": "ü"}],
        }
    },
    "names that cannot be in an environment are left out": {
        "variables": {"a-b": 1, "a.b": 2, "9x": 3, "": 4, "ü": 5, "_x": 6, "A9": 7}
    },
    "a value with a NUL is left out": {"variables": {"text": "a\0b", "list": ["a\0b"]}},
}


def _payload(given: Any) -> Any:
    return {"variables": map_payload(given["payload"], given["mapping"])}


def _bound(given: Any) -> Any:
    declared = {
        name: Variable(
            name,
            VariableType(said["type"]),
            required=said.get("required", False),
            has_default="default" in said,
            default=said.get("default"),
        )
        for name, said in given["variables"].items()
    }
    try:
        bound = bind(Definition("vectors", (), (), variables=declared), given["inputs"])
    except InvalidInput as refused:
        return {"error": {"field": refused.field, "fix": refused.fix}}
    return {"variables": bound}


def _environment(given: Any) -> Any:
    return {"environment": environment(given["variables"])}


GROUPS = {
    "payload": ("Variables from a webhook's payload.", PAYLOADS, _payload),
    "inputs": ("Variables from inputs, over the declared ones; or 400.", INPUTS, _bound),
    "environment": ("What a code step finds in its environment.", ENVIRONMENTS, _environment),
}
