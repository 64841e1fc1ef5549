"""Addresses of people: what one mailbox is, and which spellings are the same person. AP-43."""

import pytest

from wfcore.rules.mailbox import is_name, mailbox, same_name, warning_of

BUECHER = "ann@xn--bcher-kva.example"


@pytest.mark.parametrize(
    ("written", "compared"),
    [
        ("Ann@Example.ORG ", "ann@example.org"),
        ("ann@bücher.example", BUECHER),
        ("ann@BÜCHER.example", BUECHER),
        ("ann@XN--BCHER-KVA.example", BUECHER),
        ("ann@bu\u0308cher.example", BUECHER),
        ("ann@bücher。example", BUECHER),
        ("ann@straße.example", "ann@xn--strae-oqa.example"),
        ("ann@faß.de", "ann@xn--fa-hia.de"),
        ("o'neil+x_1@sub.example.org", "o'neil+x_1@sub.example.org"),
        ("jo\u0308rg@example.org", "jörg@example.org"),
        ("ann@localhost", "ann@localhost"),
    ],
)
def test_one_mailbox_has_one_spelling(written: str, compared: str) -> None:
    """Case, A-labels, composed letters and dots of other scripts make no other person. AP-43."""
    assert mailbox(written) == same_name(written) == compared
    assert mailbox(compared) == compared


@pytest.mark.parametrize(
    "text",
    [
        "dan@x.example(x)",
        "dan(x)@x.example",
        '"dan x"@x.example',
        "Dan <dan@x.example>",
        "dan@x.example,eve@x.example",
        "dan@x.example;eve@x.example",
        "dan@@x.example",
        "dan@x@y.example",
        "ann@example..org",
        "ann@.example.org",
        "ann@example.org.",
        "ann@-x.example",
        "ann@x_y.example",
        ".ann@example.org",
        "ann.@example.org",
        "a..b@example.org",
        "@example.org",
        "ann@",
        "ann",
        "",
        "an\u212a@example.org",
        "ann@[127.0.0.1]",
        "ann@x\u202e.example",
        "ann\n@example.org",
        f"{'a' * 65}@example.org",
        f"ann@{'a' * 64}.org",
        f"ann@{'.'.join(['a' * 60] * 5)}",
    ],
)
def test_what_no_mailer_takes_as_one_mailbox_is_none(text: str) -> None:
    """Comments, quotes, lists and empty parts are no address, whoever they would reach. AP-43."""
    with pytest.raises(ValueError, match="is"):
        mailbox(text)
    assert not is_name(text)


def test_ids_of_accounts_are_names_too() -> None:
    """A name is an address or the id of an account; ids are compared without case. AP-43."""
    assert is_name("acc_1")
    assert same_name(" ACC_1") == "acc_1"
    assert not any(map(is_name, ["notanemail", "acc_", "{{ variables.who }}", "group:finance"]))


def test_letters_that_mail_servers_refuse_are_told() -> None:
    """An address with a name outside ASCII is warned of, one with such a domain is not. AP-43."""
    assert warning_of("jörg@example.org") is not None
    assert warning_of("ann@bücher.example") is None
