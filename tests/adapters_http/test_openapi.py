"""What generators and readers find in the description: examples, subjects, types, errors."""

import json
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest

from adapters_http.config import HttpConfig
from adapters_http.openapi.document import document
from adapters_http.openapi.examples import examples
from adapters_http.routes import ROUTES
from wfcore import definition_from_yaml
from wfcore.errors import InvalidInput
from wfcore.rules.paging import page_request
from wfcore.wire.converter import structured
from wfcore.wire.requests import DefinitionBody, DefinitionChangeBody, DelegateBody, GateBody

DOCUMENT: dict[str, Any] = json.loads(json.dumps(document(HttpConfig())))
OPERATIONS = [one for path in DOCUMENT["paths"].values() for one in path.values()]


def resolved(part: Any) -> Any:
    """*part*, or what its reference leads to."""
    if "$ref" not in part:
        return part
    found: Any = DOCUMENT
    for name in part["$ref"].removeprefix("#/").split("/"):
        found = found[name]
    return found


def contents(operation: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every body of an operation, sent and received, by its media type."""
    yield from resolved(operation.get("requestBody", {})).get("content", {}).items()
    for response in operation["responses"].values():
        yield from resolved(response).get("content", {}).items()
    for callback in operation.get("callbacks", {}).values():
        for path in callback.values():
            yield from contents(path["post"])


def ids(operation: dict[str, Any]) -> str:
    return str(operation["operationId"])


@pytest.mark.parametrize("operation", OPERATIONS, ids=ids)
def test_every_body_has_an_example_of_its_schema(operation: dict[str, Any]) -> None:
    """Bodies, responses, errors and callbacks: what is shown is what the schema allows."""
    for media, content in contents(operation):
        schema = {**content["schema"], "components": DOCUMENT["components"]}
        if "example" in content:
            jsonschema_rs.Draft202012Validator(schema).validate(content["example"])
        else:
            free = content["schema"].get("additionalProperties") is True
            assert free or content["schema"]["format"] == "binary", media


def parts(part: Any) -> Iterator[dict[str, Any]]:
    """Every object in *part*, itself included."""
    if isinstance(part, dict):
        yield part
    for inner in (
        part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    ):
        yield from parts(inner)


def test_every_schema_is_one() -> None:
    """Parameters and headers, too: with types that there are, and enums of these."""
    found = [one["schema"] for one in parts(DOCUMENT) if isinstance(one.get("schema"), dict)]
    assert len(found) > 100
    for schema in (*found, *DOCUMENT["components"]["schemas"].values()):
        jsonschema_rs.meta.validate(
            {"$schema": "https://json-schema.org/draft/2020-12/schema"} | schema
        )
        for value in schema.get("enum", ()):
            jsonschema_rs.Draft202012Validator({"type": schema["type"]}).validate(value)


SHAPES = {route.body.__name__: route.body for route in ROUTES if route.body is not None}
RETURNED = {
    shape.__name__
    for route in ROUTES
    for shape in (route.returns, *route.otherwise.values())
    if shape is not None
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_example_bodies_are_taken(shape: type) -> None:
    """The server reads every example of a body; the example of a definition is a definition."""
    example = examples()["bodies"][shape.__name__]
    structured(shape, example)
    if shape in (DefinitionBody, DefinitionChangeBody):
        assert definition_from_yaml(example["definition"]).name == "refunds"


def test_no_example_is_left_over() -> None:
    """Each example belongs to a body or a response of some route, or to a step inside one."""
    assert set(examples()["bodies"]) == set(SHAPES)
    assert set(examples()["views"]) == RETURNED


def test_bounds_are_those_of_the_checks() -> None:
    """The largest number of a body and the largest page are the last that are not refused."""
    for shape, name, rest in (
        (DelegateBody, "until", {"to": "b@c.d"}),
        (GateBody, "timeout", {"message": "m"}),
    ):
        most = DOCUMENT["components"]["schemas"][shape.__name__]["properties"][name]["maximum"]
        assert getattr(structured(shape, {**rest, name: most}), name) == most
        with pytest.raises(InvalidInput):
            structured(shape, {**rest, name: most + 1})
    pages = [one for one in parts(DOCUMENT) if one.get("in") == "query" and one["name"] == "page"]
    assert len({one["schema"]["maximum"] for one in pages}) == 1
    most = pages[0]["schema"]["maximum"]
    assert page_request(str(most), None, (20, 50)).page == most
    with pytest.raises(InvalidInput):
        page_request(str(most + 1), None, (20, 50))


@pytest.mark.parametrize("operation", OPERATIONS, ids=ids)
def test_an_operation_belongs_to_a_subject(operation: dict[str, Any]) -> None:
    """Generated clients have one class for each subject, and each operation says what it does."""
    subjects = {tag["name"] for tag in DOCUMENT["tags"]}
    (tag,) = operation["tags"]
    assert tag in subjects
    assert operation["operationId"].startswith(tag.lower())
    assert not operation["description"].startswith(("Needs", " "))


def test_an_id_is_said_to_be_of_what_its_path_names() -> None:
    """`/api/notices/{id}` takes the id of a notice; a version is a number."""
    for path, methods in DOCUMENT["paths"].items():
        for operation in methods.values():
            for one in operation.get("parameters", ()):
                if one["name"] == "id":
                    assert one["description"].removeprefix("The id of the ") in path, path
                if one["name"] == "number":
                    assert one["schema"] == {"type": "integer", "minimum": 1}


@pytest.mark.parametrize("operation", OPERATIONS, ids=ids)
def test_every_error_is_described(operation: dict[str, Any]) -> None:
    """Each operation says how it refuses bad input, and what a full store looks like."""
    assert {"400", "431", "500", "503"} <= operation["responses"].keys()
    for status, response in operation["responses"].items():
        found = resolved(response)
        assert found["description"]
        if status in ("429", "503"):
            assert "Retry-After" in found["headers"]


def test_every_status_that_the_rows_name_is_described() -> None:
    """Nothing that a row of the table says is lost on the way into the document."""
    for route in ROUTES:
        described = DOCUMENT["paths"][route.path][route.method.lower()]["responses"]
        named = {route.status, *route.refuses, *route.also.values()}
        assert {str(status) for status in named} <= described.keys()


def objects(part: Any) -> Iterator[dict[str, Any]]:
    if isinstance(part, dict):
        if part.get("type") in ("object", ["object", "null"]):
            yield part
        for value in part.values():
            yield from objects(value)
    elif isinstance(part, list):
        for value in part:
            yield from objects(value)


def test_objects_are_typed() -> None:
    """An object has properties, or says what its values are; rows are rows everywhere."""
    for schema in objects(DOCUMENT["components"]["schemas"]):
        assert "properties" in schema or "additionalProperties" in schema
    schemas = DOCUMENT["components"]["schemas"]
    row = {"type": "array", "items": {"$ref": "#/components/schemas/Row"}}
    assert schemas["GroupDetail"]["properties"]["items"] == row
    edited = schemas["ApproveBody"]["properties"]["editedItems"]
    assert edited == {"type": "object", "additionalProperties": row}


def test_every_component_is_used() -> None:
    """What generators write a class for is something that goes over the wire."""
    text = json.dumps(DOCUMENT)
    for kind in ("schemas", "responses", "headers"):
        for name in DOCUMENT["components"][kind]:
            assert f'"#/components/{kind}/{name}"' in text, name


def test_generators_name_their_package_unlike_ours() -> None:
    """A package named by the title does not hide `wfcore_client`; the licence has its SPDX name."""
    info = DOCUMENT["info"]
    assert info["title"].lower().replace(" ", "_") + "_client" != "wfcore_client"
    assert info["license"]["identifier"] == "MIT"
    assert info["contact"]
    assert info["description"]


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://wf.example.org", "__Host-wfcore_session"),
        ("https://wf.example.org/flows", "wfcore_session"),
        ("http://wf.example.org", "wfcore_session"),
        (None, "wfcore_session"),
    ],
)
def test_the_cookie_is_the_one_that_is_set(url: str | None, name: str) -> None:
    """Where https is spoken at the root, the session has another name."""
    schemes = document(HttpConfig(public_url=url))["components"]["securitySchemes"]
    assert schemes["session"]["name"] == name
