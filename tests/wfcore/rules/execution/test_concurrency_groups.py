"""Which group an execution is in, and when a full one refuses. CC-1, CC-3, CC-4."""

from hashlib import sha256

import pytest
from attrs import evolve
from hypothesis import assume, given
from hypothesis import strategies as st

from adapters_runtime.expressions.templates import MiniJinjaTemplates
from wfcore.effects import Outcome, WakeRunner
from wfcore.errors import InvalidInput, LimitReached, TemplateFailed
from wfcore.model.json import Json, JsonObject
from wfcore.model.workflow import Concurrency
from wfcore.rules.execution.concurrency import in_group, require_room
from wfcore.rules.variables import compact
from wfcore.testing import builders
from wfcore.testing.strategies.values import json_values

BY_KEY = Concurrency(1, "{{ variables.k }}")
render = MiniJinjaTemplates().render


def group_of(value: Json, concurrency: Concurrency = BY_KEY, workflow: str = "wf_1") -> str:
    run = builders.execution(workflow_id=workflow, variables={"k": value})
    return in_group(Outcome(run), concurrency, render).record.concurrency_group or ""


def text(value: Json) -> str:
    return value if isinstance(value, str) else compact(value)


@given(json_values(), json_values())
def test_the_same_key_is_the_same_group(one: Json, other: Json) -> None:
    """CC-3: exactly those share a group whose keys have the same text, in one workflow."""
    assert (group_of(one) == group_of(other)) is (text(one) == text(other))
    assert group_of(one) != group_of(one, workflow="wf_2")


@given(json_values())
def test_without_a_key_all_are_in_one_group(value: Json) -> None:
    """CC-1: the workflow's."""
    assert group_of(value, Concurrency(1)) == "wf_1"


@given(st.text(min_size=8))
def test_a_group_does_not_show_its_key(value: str) -> None:
    """CC-3: of the value only a digest is kept, of one length for all."""
    group = group_of(value)
    assert value not in group
    assert len(group) == len(group_of("")) == len("wf_1:") + 32


@pytest.mark.parametrize(
    ("value", "text"), [("x", b"x"), ({"a": 1}, b'{"a":1}'), ("\ud800", b"\xed\xa0\x80")]
)
def test_a_group_is_one_that_is_found_again(value: Json, text: bytes) -> None:
    """CC-3: of the key's text a SHA-256, in every version; of odd text as well."""
    outcome = Outcome(builders.execution(), (builders.event(),), (WakeRunner(),))
    grouped = in_group(outcome, BY_KEY, lambda template, names: value)
    group = f"wf_1:{sha256(text).hexdigest()[:32]}"
    assert grouped == evolve(outcome, record=evolve(outcome.record, concurrency_group=group))


def test_a_key_that_fails_names_its_field() -> None:
    """CC-3: what failed is said in the words of the template."""

    def fails(template: Json, names: JsonObject) -> Json:
        raise TemplateFailed(str(template), f"of {list(names)}, token=hunter22")

    run = builders.execution(variables={"k": "hunter22"}, secrets=("k",))
    with pytest.raises(InvalidInput) as caught:
        in_group(Outcome(run), BY_KEY, fails)
    words = "template '{{ variables.k }}': of ['variables', 'trigger'], token=***"
    assert (caught.value.field, caught.value.fix) == ("concurrency.key", words)


def test_a_key_that_fails_shows_no_secret() -> None:
    """CC-3, SC-4: what is said of it names the field and masks secrets."""
    run = builders.execution(variables={"k": "hunter22"}, secrets=("k",))
    key = Concurrency(1, '{{ variables.k + 1 }}{{ variables["hunter22"] }}')
    with pytest.raises(InvalidInput) as caught:
        in_group(Outcome(run), key, render)
    assert caught.value.field == "concurrency.key"
    assert "hunter22" not in str(caught.value)


@given(st.integers(1, 9), st.integers(0, 12), st.sampled_from((None, "{{ variables.k }}")))
def test_a_full_group_refuses(limit: int, unfinished: int, key: str | None) -> None:
    """CC-4: as soon as as many have not ended as may run at once, and not before, in words."""
    concurrency = Concurrency(limit, key)
    if unfinished < limit:
        require_room(builders.execution(), concurrency, unfinished)
    else:
        with pytest.raises(LimitReached) as caught:
            require_room(builders.execution(), concurrency, unfinished)
        assert caught.value.limit == limit
        assert caught.value.workflow_id == builders.execution().workflow_id
        many = f"{limit} execution{'s' * (limit > 1)}{' with this key' * (key is not None)}"
        why = f"The workflow allows {many} at once, and as many have not ended"
        assert str(caught.value) == why


@given(json_values())
def test_a_key_over_what_is_not_there_is_refused(value: Json) -> None:
    """CC-3: a variable without a value has no group."""
    assume(value is not None)
    run = builders.execution(variables={"other": value})
    with pytest.raises(InvalidInput):
        in_group(Outcome(run), BY_KEY, render)
