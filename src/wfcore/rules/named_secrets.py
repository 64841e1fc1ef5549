"""
Named secrets: values of an account that only the steps which list their names receive. SC-5 to
SC-8.

A step finds each secret as `WF_SECRET_<NAME>`; templates cannot read them. The output of the step
is masked before it is stored, so that no other step and no reader gets the value from there.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from attrs import define, evolve

from wfcore.errors import InvalidInput, NotFound, Problem, WfError
from wfcore.model.access import Account, NamedSecret
from wfcore.model.workflow import CodeStep, Definition
from wfcore.rules.limits import SECRET_BYTES, SECRET_LINES, SECRETS_PER_ACCOUNT
from wfcore.rules.masking import MASK
from wfcore.rules.paths import below
from wfcore.rules.variables import NO_NUL
from wfcore.time import EpochMs

NAME = r"[A-Za-z_][A-Za-z0-9_]{0,63}"
WANTED = "up to 64 letters, digits and _, beginning with a letter or _"


@define
class SecretMissing(WfError):
    """A step lists a secret that its workflow's account does not have."""

    name: str
    account_id: str

    def __str__(self) -> str:
        return f"secrets: {_unset(self.name, self.account_id)}"


def _unset(name: str, account_id: str) -> str:
    return f"{name} is not set; wfcore secret set {name} --account {account_id}"


def with_secret(account: Account, name: str, value: str, now: EpochMs) -> Account:
    """*account* with *name* set, replacing an earlier value. Raises `InvalidInput`. SC-5."""
    if re.fullmatch(NAME, name) is None:
        raise InvalidInput("name", f"must be {WANTED}")
    if not value or len(value.encode("utf-8", "surrogatepass")) > SECRET_BYTES:
        raise InvalidInput("value", f"must have 1 to {SECRET_BYTES} bytes")
    if "\0" in value:
        raise InvalidInput("value", NO_NUL)
    if len(value.splitlines()) > SECRET_LINES:
        raise InvalidInput("value", f"must have at most {SECRET_LINES} lines")
    others = [one for one in account.secrets if one.name != name]
    if len(others) >= SECRETS_PER_ACCOUNT:
        raise InvalidInput("name", f"an account has at most {SECRETS_PER_ACCOUNT} secrets")
    found = sorted([*others, NamedSecret(name, value, now)], key=lambda one: one.name)
    return evolve(account, secrets=tuple(found))


def without_secret(account: Account, name: str) -> Account:
    """*account* without the secret *name*. Raises `NotFound`. SC-5."""
    others = tuple(one for one in account.secrets if one.name != name)
    if len(others) == len(account.secrets):
        raise NotFound("Secret")
    return evolve(account, secrets=others)


def missing_secrets(account: Account, definition: Definition) -> Sequence[Problem]:
    """The steps that list secrets which *account* does not have. SC-7."""
    names = {one.name for one in account.secrets}
    return [
        Problem(below(below(path, "secrets"), number), _unset(name, account.id))
        for path, number, name in _listed(definition)
        if name not in names
    ]


def foreign_secrets(before: Definition, definition: Definition) -> Sequence[Problem]:
    """
    The steps that list secrets which no step of *before* lists. An editor who is not the owner may
    change steps, and so use the secrets that the steps have, but cannot give steps further secrets.
    SC-8.
    """
    given = {name for _, _, name in _listed(before)}
    return [
        Problem(below(below(path, "secrets"), number), f"only the workflow's owner may add {name}")
        for path, number, name in _listed(definition)
        if name not in given
    ]


def secrets_in(definition: Definition) -> frozenset[str]:
    """The names of the secrets that the steps of *definition* list. SC-6."""
    return frozenset(name for _, _, name in _listed(definition))


def _listed(definition: Definition) -> Iterator[tuple[str, int, str]]:
    """The path of each step with secrets, the place in its list, and the name."""
    for path, step in definition.located():
        if isinstance(step, CodeStep):
            yield from ((path, number, name) for number, name in enumerate(step.secrets))


def secrets_for(account: Account, step: CodeStep) -> Mapping[str, str]:
    """The secrets given to *step*, by environment variable. Raises `SecretMissing`. SC-6, SC-7."""
    values = {one.name: one.value for one in account.secrets}
    for name in step.secrets:
        if name not in values:
            raise SecretMissing(name, account.id)
    return {f"WF_SECRET_{name}": values[name] for name in step.secrets}


def kept_secret(definition: Definition, names: Collection[str]) -> Definition:
    """
    *definition* in which the variables *names* are secret, too. A variable that is declared secret
    later is hidden in all earlier versions as well. SC-9.
    """
    secret = {
        name: evolve(one, secret=one.secret or name in names)
        for name, one in definition.variables.items()
    }
    return evolve(definition, variables=secret)


def masked_defaults(definition: Definition) -> Iterator[Problem]:
    """
    The secret variables whose default is the mask: a text that was shown, and not the value. SC-9.
    """
    for name, one in definition.variables.items():
        if one.secret and one.has_default and one.default == MASK:
            fix = (
                f"is {MASK}, which is shown in place of a secret: write the value, or leave it out"
            )
            yield Problem(f"variables.{name}.default", fix)
