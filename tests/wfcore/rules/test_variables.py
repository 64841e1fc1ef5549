"""Variables: from payloads and inputs to executions and into code steps."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wfcore.errors import InvalidInput
from wfcore.model.workflow import Variable, VariableType
from wfcore.rules.limits import VARIABLE_ENV_BYTES
from wfcore.rules.variables import (
    NO_HALVES,
    NO_NUL,
    bind,
    compact,
    environment,
    fits,
    map_payload,
    parse_text,
)
from wfcore.testing import builders
from wfcore.testing.strategies.values import json_values, payloads, texts, typed, variables

NAMES = ("a", "b", "c", "d")
names = st.sampled_from(NAMES)
declarations = st.sets(names).flatmap(
    lambda chosen: st.fixed_dictionaries({name: variables(name) for name in chosen})
)
small_payloads = payloads(names)


@given(payloads())
def test_without_a_mapping_scalars_keep_their_names(payload):
    """VM-1: strings, numbers and booleans of the top level; no objects, arrays or null."""
    mapped = map_payload(payload, None)
    assert mapped == {k: v for k, v in payload.items() if type(v) in (str, bool, int, float)}


@given(small_payloads, st.dictionaries(texts(1), names))
def test_with_a_mapping_only_what_it_names_is_mapped(payload, mapping):
    """VM-2: variable name to top-level field name, whatever the field holds but null."""
    mapped = map_payload(payload, mapping)
    found = {variable: payload.get(field) for variable, field in mapping.items()}
    assert mapped == {variable: value for variable, value in found.items() if value is not None}


@given(st.sampled_from(["a.b", "a[0]", "$.a", "/a/b"]))
def test_a_mapping_knows_no_paths(path):
    """VM-2: a nested path is the name of a field that is not there."""
    assert map_payload({"a": {"b": 1}}, {"x": path}) == {}


@given(declarations, small_payloads, st.dictionaries(names, names))
def test_a_missing_field_leaves_the_default_in_force(declared, payload, mapping):
    """VM-3: it is not overwritten, not even by null."""
    definition = builders.definition(variables=declared)
    mapped = map_payload(payload, mapping)
    for name in mapping.keys() - mapped.keys():
        variable = declared.get(name)
        if variable is not None and variable.has_default and fits_all(declared, mapped):
            assert bind(definition, mapped)[name] == variable.default


def fits_all(declared, inputs) -> bool:
    """What `bind` accepts, said another way."""
    typed_right = all(fits(declared[k].type, v) for k, v in inputs.items() if k in declared)
    given_ = {k for k, v in inputs.items() if v is not None}
    defaults = {k for k, v in declared.items() if v.has_default}
    return typed_right and {k for k, v in declared.items() if v.required} <= given_ | defaults


@given(declarations, small_payloads)
def test_inputs_go_over_the_defaults(declared, inputs):
    """VM-4, VM-5: typed, required, undeclared ones accepted; a mistake names its variable."""
    definition = builders.definition(variables=declared)
    if fits_all(declared, inputs):
        defaults = {k: v.default for k, v in declared.items() if v.has_default}
        assert bind(definition, inputs) == {**defaults, **inputs}
    else:
        with pytest.raises(InvalidInput) as mistake:
            bind(definition, inputs)
        assert mistake.value.field.removeprefix("inputs.") in declared


@given(st.sampled_from(VariableType))
def test_null_is_no_value_of_a_required_variable(type):
    """VM-5: not even as its default."""
    required = Variable("v", type, required=True, has_default=True, default=None)
    with pytest.raises(InvalidInput, match=r"inputs\.v: is required"):
        bind(builders.definition(variables={"v": required}), {})


@given(st.sampled_from(VariableType), st.data())
def test_a_value_of_the_declared_type_is_taken_as_it_is(type, data):
    """VM-4: whether there is a default or none."""
    value, default = data.draw(typed(type)), data.draw(typed(type))
    for declared in (Variable("v", type), Variable("v", type, True, True, default)):
        assert bind(builders.definition(variables={"v": declared}), {"v": value}) == {"v": value}


@given(st.sampled_from(VariableType), st.sampled_from(VariableType), st.data())
def test_a_value_fits_its_own_type_only(type, other, data):
    """VM-4: the five types do not overlap: true is no number, text no array."""
    value = data.draw(typed(type))
    assert fits(other, value) is (type is other)
    assert not fits(type, None)


@given(payloads(st.sampled_from(["a", "_A1", "größe", "1a", "a-b", "a b", "", "a\n", "WF"])))
def test_each_variable_with_a_usable_name_is_in_the_environment(given_):
    """CS-1: `WF_VAR_<name>`, strings as they are, everything else as JSON."""
    env = environment(given_)
    usable = {"a", "_A1", "WF"} & given_.keys()
    for name in usable:
        value = given_[name]
        text = value if isinstance(value, str) else compact(value)
        if "\0" not in text:
            assert env[f"WF_VAR_{name}"] == text
            assert isinstance(value, str) or json.loads(text) == value
    assert env.keys() <= {f"WF_VAR_{name}" for name in usable}


@given(st.sampled_from(["x", "é", "€", "😀"]), st.integers(-3, 3))
def test_a_value_over_the_limit_is_left_to_the_context_file(letter, over):
    """CS-3: 100,000 bytes fit, one more does not; bytes count, not letters."""
    size = len(letter.encode())
    text = letter * (VARIABLE_ENV_BYTES // size + over)
    assert ("WF_VAR_v" in environment({"v": text})) is (len(text.encode()) <= 100_000)


@given(st.text())
def test_a_value_with_a_nul_is_left_to_the_context_file(text):
    """CS-3: no process could be given it."""
    assert environment({"v": f"{text}\0{text}"}) == {}


@given(st.sampled_from([t for t in VariableType if t is not VariableType.STRING]), st.data())
def test_text_is_read_as_its_declared_type(type, data):
    """VM-6: what is written as JSON of that type comes back as that value."""
    value = data.draw(typed(type))
    assert parse_text(Variable("v", type), compact(value)) == value


@given(st.text())
def test_text_for_a_string_stays_text(text):
    """VM-6: for an undeclared variable too."""
    assert parse_text(None, text) == text
    assert parse_text(Variable("v", VariableType.STRING), text) == text


@given(
    st.sampled_from([t for t in VariableType if t is not VariableType.STRING]),
    st.text() | json_values().map(compact),
)
def test_text_of_another_type_is_refused(type, text):
    """VM-6: with the variable's name, and nothing else is ever raised."""
    try:
        value = json.loads(text)
        wanted = fits(type, value)
    except ValueError:
        wanted = False
    if not wanted:
        with pytest.raises(InvalidInput, match=r"inputs\.v"):
            parse_text(Variable("v", type), text)


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e999", "[" * 100_000])
@pytest.mark.parametrize("wrap", ["{}", "[{}]", '{{"a":{}}}'])
@pytest.mark.parametrize("type", [VariableType.NUMBER, VariableType.ARRAY, VariableType.OBJECT])
def test_what_is_no_json_is_no_value(text, wrap, type):
    """VM-6: NaN and infinity are no JSON, wherever they stand, and depth is no crash."""
    with pytest.raises(InvalidInput):
        parse_text(Variable("v", type), wrap.format(text))


WANTED = {
    VariableType.STRING: "a string",
    VariableType.NUMBER: "a number",
    VariableType.BOOLEAN: "true or false",
    VariableType.OBJECT: "an object",
    VariableType.ARRAY: "an array",
}


@pytest.mark.parametrize("type", VariableType)
def test_a_mistake_says_what_is_wanted(type):
    """VM-4, VM-6: the input by its name, and what it must be, given as JSON or as text."""
    declared = Variable("v", type)
    with pytest.raises(InvalidInput) as mistake:
        bind(builders.definition(variables={"v": declared}), {"v": None})
    assert str(mistake.value) == f"inputs.v: must be {WANTED[type]}"
    if type is not VariableType.STRING:
        with pytest.raises(InvalidInput) as mistake:
            parse_text(declared, "null")
        assert str(mistake.value) == f"inputs.v: must be {WANTED[type]}"


def test_json_is_written_without_blanks_and_escapes():
    """CS-1, CS-3: as short as it can be, letters as they are, half a surrogate pair included."""
    assert compact({"a": [1, "é", None], "b": True}) == '{"a":[1,"é",null],"b":true}'
    assert environment({"v": "\ud800", "w": ["\ud800"]}) == {
        "WF_VAR_v": "\ud800",
        "WF_VAR_w": '["\ud800"]',
    }


def test_a_number_is_read_as_it_is_written():
    """VM-6: whole ones stay whole, others are floats."""
    declared = Variable("v", VariableType.ARRAY)
    assert str(parse_text(declared, "[1, 1.5, 1e3]")) == "[1, 1.5, 1000.0]"


@pytest.mark.parametrize("inputs", [{"a": "x\0"}, {"free": "\0"}, {"a\0b": 1}])
def test_text_that_no_environment_can_hold_is_refused(inputs):
    """VM-7: declared or not, value or name; inside of JSON a NUL is written and does no harm."""
    definition = builders.definition(variables={"a": Variable("a")})
    with pytest.raises(InvalidInput) as mistake:
        bind(definition, inputs)
    assert str(mistake.value) == f"inputs.{next(iter(inputs))}: {NO_NUL}"
    nested = bind(definition, {"deep": ["\0"]})
    assert "\0" not in environment(nested)["WF_VAR_deep"]


@pytest.mark.parametrize(
    "inputs",
    [{"a": "caf\udce9"}, {"caf\udce9": 1}, {"a": {"deep": ["\ud800"]}}, {"a": {"\ud800": 1}}],
)
def test_text_that_utf8_cannot_hold_is_refused(inputs):
    """VM-7: half a surrogate pair, declared or not, value or name, at any depth; a pair is text."""
    definition = builders.definition(variables={})
    with pytest.raises(InvalidInput) as mistake:
        bind(definition, inputs)
    assert str(mistake.value) == f"inputs.{next(iter(inputs))}: {NO_HALVES}"
    assert bind(definition, {"a": ["\U0001f600"]}) == {"a": ["\U0001f600"]}
