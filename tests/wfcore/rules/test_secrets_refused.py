"""What can be no secret, or is none, is refused in exact words. SC-5 to SC-7."""

from collections.abc import Callable

import pytest
from attrs import astuple

from wfcore.errors import InvalidInput, NotFound, WfError
from wfcore.rules.limits import SECRET_BYTES, SECRETS_PER_ACCOUNT
from wfcore.rules.named_secrets import SecretMissing, secrets_for, with_secret, without_secret
from wfcore.rules.variables import NO_NUL
from wfcore.testing import builders as make
from wfcore.testing.builders import NOW

ANN = with_secret(make.account(), "TOKEN", "hunter22", NOW)
SIZE = InvalidInput("value", f"must have 1 to {SECRET_BYTES} bytes")
NAME = InvalidInput("name", "must be up to 64 letters, digits and _, beginning with a letter or _")


def many() -> object:
    account = make.account()
    for number in range(SECRETS_PER_ACCOUNT + 1):
        account = with_secret(account, f"S{number}", "x", NOW)
    return account


REFUSED: list[tuple[Callable[[], object], WfError]] = [
    (lambda: with_secret(ANN, "1", "x", NOW), NAME),
    (lambda: with_secret(ANN, "A", "", NOW), SIZE),
    (lambda: with_secret(ANN, "A", "\u00fc" * (SECRET_BYTES // 2 + 1), NOW), SIZE),
    (lambda: with_secret(ANN, "A", "a\0b", NOW), InvalidInput("value", NO_NUL)),
    (many, InvalidInput("name", f"an account has at most {SECRETS_PER_ACCOUNT} secrets")),
    (lambda: without_secret(ANN, "OTHER"), NotFound("Secret")),
    (
        lambda: secrets_for(ANN, make.code_step(secrets=("TOKEN", "OTHER"))),
        SecretMissing("OTHER", "acc_1"),
    ),
]


@pytest.mark.parametrize(("deed", "wanted"), REFUSED)
def test_what_is_no_secret_is_refused(deed: Callable[[], object], wanted: WfError) -> None:
    """With the field and what would do; the value is never shown. SC-5, SC-7."""
    with pytest.raises(type(wanted)) as caught:
        deed()
    assert astuple(caught.value) == astuple(wanted)  # type: ignore[arg-type]


def test_what_is_missing_is_told_with_the_command_that_sets_it() -> None:
    """SC-7."""
    said = "secrets: OTHER is not set; wfcore secret set OTHER --account acc_1"
    assert str(SecretMissing("OTHER", "acc_1")) == said
