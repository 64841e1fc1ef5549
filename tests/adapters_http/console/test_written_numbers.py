"""Numbers and dates in the fields of forms, without scripts: as the reader writes them."""

import re
from html import unescape
from typing import Any

import httpx
import pytest

from tests.support.http_world import code
from wfcore.model.access import OPERATOR
from wfcore.model.workflow import Column, ColumnType, Variable, VariableType
from wfcore.usecases.executions.executions import read_execution

from .approval_case import Case, both
from .conftest import Site
from .test_executions import Reader

LIMIT = (Column("limit", "Limit", ColumnType.NUMBER),)


def reader_of(site: Site, languages: str) -> Reader:
    """Ann, whose browser names *languages*; pages stay English."""
    reader = Reader(site)
    cookie = f"{reader.headers['Cookie']}; wfcore_language=en"
    reader.headers = {**reader.headers, "Cookie": cookie, "Accept-Language": languages}
    return reader


def value_of(answer: httpx.Response, name: str) -> str:
    """What stands in a field."""
    (found,) = re.findall(rf'<input[^>]*name="{name}"[^>]*>', answer.text)
    return unescape(re.findall(r'value="([^"]*)"', found)[0])


@pytest.mark.parametrize(
    ("languages", "shown", "typed", "value"),
    [
        ("es-ES,es;q=0.9", "1,234", "1.200", None), ("es-ES,es;q=0.9", "1,234", "7,5", 7.5),
        ("en,fr;q=0.5", "1.234", "1.200", None), ("en", "1.234", "1.200", 1.2),
        ("es-MX", "1.234", "1.200", 1.2), ("pt-BR", "1,234", "1,234", 1.234),
        ("en", "1.234", "9007199254740993,0", 9_007_199_254_740_993),
    ],
)  # fmt: skip
def test_a_form_reads_the_readers_numbers(
    site: Site, languages: str, shown: str, typed: str, value: float | None
):
    """Of a start: the default is shown so, what may be two numbers is asked back. AP-46."""
    variable = Variable("limit", VariableType.NUMBER, has_default=True, default=1.234)
    step = code("only")
    workflow = site.do(site.world.workflow(step, variables={"limit": variable}))
    reader, path = reader_of(site, languages), f"/workflows/{workflow}/start"
    page = reader.get(path)
    assert value_of(page, "inputs.limit") == shown
    answer = _sent(reader, path, {"once": "a" * 22, "inputs.limit": typed})
    if value is None:
        assert answer.status_code == 400
        assert f"is 1200 or {shown[0]}{shown[1]}200?" in answer.text
        assert value_of(answer, "inputs.limit") == typed
        return
    id = answer.headers["location"].rpartition("/")[2]
    execution = site.do(read_execution(site.world.services, OPERATOR, id))
    assert dict(execution.variables) == {"limit": value}


def _sent(reader: Reader, path: str, form: dict[str, str]) -> httpx.Response:
    headers = {**reader.headers, "Origin": reader.site.url, "Accept": "text/html"}
    return reader.site.do(reader.site.world.http.post(path, data=form, headers=headers))


def test_an_answer_is_read_so_and_stays_if_nobody_touches_it(site: Site):
    """The next approver's form shows it with the sign of that one, and sends it back unchanged."""
    case: Any = Case(site, 0, fields=LIMIT, **both(required_approvals=2))
    ann = reader_of(site, "nl")
    path = f"/approvals/{case.id}"
    seen = re.findall(r'name="expectedItemsHash" value="(\w+)"', ann.get(path).text)[0]
    form = {"decision": "approve", "expectedItemsHash": seen}
    asked = _sent(ann, path, {**form, "answers.limit": "1.200"})
    assert asked.status_code == 409
    assert "Limit: is 1200 or 1,200? Write 1200 or 1,2000" in asked.text
    assert _sent(ann, path, {**form, "answers.limit": "1,2340"}).status_code == 303
    assert case.now().answers == {"limit": 1.234}
    bob = Reader(site, "bob")
    bob.headers = {**bob.headers, "Accept-Language": "fr"}
    page = bob.get(path)
    assert value_of(page, "answers.limit") == "1,234"
    seen = re.findall(r'name="expectedItemsHash" value="(\w+)"', page.text)[0]
    form = {"decision": "approve", "expectedItemsHash": seen, "answers.limit": "1,234"}
    assert _sent(bob, path, form).status_code == 303
    assert (case.now().answers, len(case.now().assents)) == ({"limit": 1.234}, 2)


@pytest.mark.parametrize(
    ("languages", "typed", "value"),
    [
        ("de-DE,en-US;q=0.5", "12.11.2026", "2026-11-12"), ("en-US", "12/11/2026", "2026-12-11"),
        ("en-AU,en;q=0.9", "12/11/2026", "2026-11-12"), ("en-GB,en-US;q=0.9", "12/11/2026", None),
        ("ja", "12/31/2026 0:00", "2026-12-31"),
    ],
)  # fmt: skip
def test_a_date_is_read_in_the_readers_order(
    site: Site, languages: str, typed: str, value: str | None
):
    """What may be two dates is asked back, and stands in the field as it was typed. AP-48."""
    case: Any = Case(site, 0, fields=(Column("by", "By", ColumnType.DATE),))
    ann, path = reader_of(site, languages), f"/approvals/{case.id}"
    page = ann.get(path).text
    assert re.search(r'<input[^>]*name="answers.by"[^>]*type="date"', page)
    seen = re.findall(r'name="expectedItemsHash" value="(\w+)"', page)[0]
    form = {"decision": "approve", "expectedItemsHash": seen, "answers.by": typed}
    answer = _sent(ann, path, form)
    if value is None:
        assert answer.status_code == 409
        assert "By: is 2026-11-12 or 2026-12-11? Write 2026-11-12 or 2026-12-11" in answer.text
        assert value_of(answer, "answers.by") == typed
        assert not re.search(r'name="answers.by"[^>]*type="date"', answer.text)
        return
    assert answer.status_code == 303
    assert case.now().answers == {"by": value}
