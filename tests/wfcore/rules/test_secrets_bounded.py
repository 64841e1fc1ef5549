"""How much of secrets an execution may have, and that many forms are found as few are. SC-11."""

from typing import SupportsIndex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wfcore.errors import InvalidInput
from wfcore.model.access import Account, Tier
from wfcore.model.json import Json
from wfcore.rules import masking
from wfcore.rules.limits import SECRET_LINES, SECRET_VALUES, SECRET_VARIABLES_BYTES
from wfcore.rules.masking import mask_text, secrets_of
from wfcore.rules.named_secrets import with_secret
from wfcore.rules.variables import check_secrets
from wfcore.time import EpochMs


@pytest.mark.parametrize(
    "most",
    [
        "\n".join(["line"] * SECRET_LINES),
        [["one", 1]] * (SECRET_VALUES // 2),
        {"a": {"b": "x" * (SECRET_VARIABLES_BYTES - 14)}},
    ],
    ids=["lines", "values", "bytes"],
)
def test_secrets_have_a_bound_together(most: Json) -> None:
    """Lines, values and bytes, in all secret variables: one more is refused by its name. SC-11."""
    variables = {"token": most, "more": "x", "open": [most, most]}
    check_secrets(variables, {"token"})
    with pytest.raises(InvalidInput, match="secrets have at most 200 lines") as refused:
        check_secrets(variables, {"token", "more"})
    assert refused.value.field == "inputs.more"


def test_a_named_secret_has_as_many_lines() -> None:
    """It is masked in the same way. SC-11."""
    account = Account("a", "ann@example.org", "Ann", Tier.PRO, EpochMs(0))
    assert with_secret(account, "A", "x\n" * SECRET_LINES, EpochMs(0)).secrets
    with pytest.raises(InvalidInput, match="at most 200 lines"):
        with_secret(account, "A", "x\n" * (SECRET_LINES + 1), EpochMs(0))


LINES = st.lists(st.text("ab1é'", min_size=1, max_size=7), min_size=1, max_size=6)


@given(LINES, st.lists(st.text("ab1é' ", max_size=9)))
def test_many_forms_are_found_as_few_are(lines: list[str], around: list[str]) -> None:
    """Whether forms are searched one by one, or those alone whose beginning is there. SC-1."""
    secrets, text = secrets_of(["\n".join(lines), *lines]), "".join([*around, *lines, *around])
    expected = mask_text(text, secrets)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(masking, "_FEW", 0)
        assert mask_text(text, secrets) == expected


class Asked(str):
    """A text that counts how often something is searched in it."""

    searches = 0

    def __contains__(self, part: str) -> bool:
        type(self).searches += 1
        return super().__contains__(part)


def test_forms_that_do_not_begin_in_a_text_are_not_searched() -> None:
    """However many there are, the text is read once for all of them. SC-11."""
    secrets = secrets_of(["\n".join(f"{number:04}x" for number in range(SECRET_LINES))])
    mask_text(Asked("q" * 1_000 + "0007y"), secrets)
    assert 0 < Asked.searches <= 10


def test_forms_are_made_once() -> None:
    """Each row and line that is shown uses those that were made before."""
    assert secrets_of(["hunter22", "x"]) is secrets_of(["x", "hunter22"])


AB = st.text("ab", max_size=30)


@given(AB, AB)
def test_the_longest_overlap_is_found(first: str, second: str) -> None:
    """Of an end and a beginning, from four characters on. SC-1."""
    most = min(len(first), len(second))
    fitting = (n for n in range(most, 3, -1) if first.endswith(second[:n]))
    assert masking._overlap(first, second) == next(fitting, 0)


class Cut(str):
    """A text that counts how often a part of it is copied."""

    copies = 0

    def __getitem__(self, at: SupportsIndex | slice) -> str:
        type(self).copies += 1
        return super().__getitem__(at)


def test_an_overlap_is_found_without_a_copy_for_each_length() -> None:
    """A long secret of one repeated character is read as fast as any other. SC-11."""
    assert masking._overlap(Cut("a" * 300 + "b"), Cut("a" * 500)) == 0
    assert masking._overlap(Cut("b" + "a" * 300), Cut("a" * 500)) == 300
    assert Cut.copies <= 10
