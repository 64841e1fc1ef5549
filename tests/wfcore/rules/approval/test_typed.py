"""What people type into fields is the value that they mean, or stays what they typed. AP-30."""

import pytest
from hypothesis import given

from wfcore.errors import InvalidInput
from wfcore.model.review import Column, ColumnType
from wfcore.rules.approval.typed import cell_text, choices, read_answers, typed_value
from wfcore.testing import builders as make
from wfcore.testing.strategies.values import json_values


def field(type: ColumnType, *options: object) -> Column:
    return Column("f", "F", type, options=options)  # type: ignore[arg-type]


@given(json_values())
def test_what_is_shown_is_read_back(value: object) -> None:
    """Any value of a JSON field, and any text of a text field. AP-30."""
    text = cell_text(value)  # type: ignore[arg-type]
    if isinstance(value, str):
        assert typed_value(field(ColumnType.STRING), text) == (value if value.strip() else None)
    else:
        assert typed_value(field(ColumnType.JSON), text) == value


@pytest.mark.parametrize(
    ("type", "typed", "value"),
    [
        (ColumnType.STRING, "", None),
        (ColumnType.STRING, " \n", None),
        (ColumnType.STRING, " a ", " a "),
        (ColumnType.STRING, "12", "12"),
        (ColumnType.DATE, "2026-01-02", "2026-01-02"),
        (ColumnType.NUMBER, "12.5", 12.5),
        (ColumnType.NUMBER, "twelve", "twelve"),
        (ColumnType.NUMBER, "NaN", "NaN"),
        (ColumnType.NUMBER, "-Infinity", "-Infinity"),
        (ColumnType.NUMBER, str(2**63 - 1), 2**63 - 1),
        (ColumnType.NUMBER, "120.00", 120),
        (ColumnType.BOOLEAN, "true", True),
        (ColumnType.BOOLEAN, "yes", "yes"),
        (ColumnType.JSON, '{"a": [1]}', {"a": [1]}),
        (ColumnType.JSON, "[NaN]", "[NaN]"),
        (ColumnType.JSON, "[" * 100_000, "[" * 100_000),
        (ColumnType.ENUM, "7", 7),
        (ColumnType.ENUM, "süß", "süß"),
        (ColumnType.ENUM, "8", "8"),
    ],
)
def test_each_type_of_field_is_typed_so(type: ColumnType, typed: str, value: object) -> None:
    """What no value looks like stays text, for the rules of answers to refuse. AP-30."""
    assert typed_value(field(type, "süß", 7), typed) == value


@pytest.mark.parametrize(
    "typed",
    [str(2**63), str(-(2**63) - 1), "9" * 5_000, "1e999", "1e-400", "1.00000000000000000001"],
)
def test_a_number_that_would_be_another_is_refused(typed: str) -> None:
    """With the name of its field, as in the body of a decision. NU-2."""
    approval = make.approval(fields=(field(ColumnType.JSON),))
    with pytest.raises(InvalidInput, match=r"^answers\.f: the number "):
        read_answers(approval, {"f": f"[{typed}]"})


def test_letters_are_shown_as_they_are() -> None:
    """Null is an empty field; other values are JSON that people can read."""
    assert [cell_text(one) for one in (None, "ü", 1, ["ü"])] == ["", "ü", "1", '["ü"]']


def test_what_can_be_chosen() -> None:
    """AP-30: yes and no, or the options as they are typed."""
    assert choices(field(ColumnType.BOOLEAN)) == [("true", "yes"), ("false", "no")]
    assert choices(field(ColumnType.ENUM, "a", 7)) == [("a", "a"), ("7", "7")]


def test_answers_are_typed_by_their_fields() -> None:
    """A field that there is not stays text; what is no text is refused. AP-30."""
    approval = make.approval(fields=(field(ColumnType.NUMBER),))
    assert read_answers(approval, {"f": "1", "g": "1"}) == {"f": 1, "g": "1"}
    for key in ("f", "g"):
        with pytest.raises(InvalidInput) as refused:
            read_answers(approval, {key: 1})
        assert (refused.value.field, refused.value.fix) == (f"answers.{key}", "must be text")
