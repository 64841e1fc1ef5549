"""
Addresses of people: the form of a mailbox, and the spellings that mean the same one. AP-43.

Domains are compared by their A-labels, as browsers and mail servers write them, and whole addresses
without case. So an account, an approver and a typed name are one person, however each was spelt.
The mapping of a label is that of UTS #46 without its transitional part: lower case and NFKC, with ß
and final sigma kept, since `straße.example` and `strasse.example` have different owners. The codec
`idna` of the standard library maps both to one name.
"""

import re
import unicodedata
from contextlib import suppress
from functools import lru_cache

_LOCAL = re.compile(r"[\w!#$%&'*+/=?^`{|}~-]+(\.[\w!#$%&'*+/=?^`{|}~-]+)*")
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_DOTS = re.compile("[.\u3002\uff0e\uff61]")
_ACCOUNT = re.compile(r"acc_[0-9a-z]+", re.IGNORECASE)
FORMS = "an email address or an account id (acc_…)"
"""The forms of a person's name, in words."""
LONGEST_LOCAL, LONGEST_DOMAIN = 64, 253
"""Bytes before the `@`, and characters of a domain as it is compared."""
_IN_NAMES = ("L", "M", "Nd")
"""Categories of the letters, marks and digits that a name of a domain may hold."""


@lru_cache(maxsize=4_096)
def mailbox(text: str) -> str:
    """
    The address in the form for comparison and mail: `Dan@Bücher.example` is
    `dan@xn--bcher-kva.example`.

    Raises `ValueError` for a text that a mailer would not take as one mailbox: comments, quotes,
    lists, names, empty parts. The local part may hold letters of any script.
    """
    typed, at, domain = text.strip().rpartition("@")
    local = unicodedata.normalize("NFC", typed.lower())
    looks_alike = local.isascii() and not typed.isascii()  # as a Kelvin sign becomes a k
    if looks_alike or not at or len(local.encode()) > LONGEST_LOCAL or not _LOCAL.fullmatch(local):
        raise ValueError("is no email address")
    return f"{local}@{ascii_domain(domain)}"


def ascii_domain(text: str) -> str:
    """The domain in A-labels and lower case. Raises `ValueError` for an invalid domain."""
    labels = [_ascii_label(label) for label in _DOTS.split(text)]
    if sum(map(len, labels)) + len(labels) - 1 > LONGEST_DOMAIN:
        raise ValueError("is longer than a domain may be")
    return ".".join(labels)


def _ascii_label(label: str) -> str:
    mapped = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", label).lower())
    if not mapped.isascii():
        if not all(one in "-" or unicodedata.category(one).startswith(_IN_NAMES) for one in mapped):
            raise ValueError("is no domain")
        mapped = "xn--" + mapped.encode("punycode").decode("ascii")
    if not _LABEL.fullmatch(mapped):
        raise ValueError("is no domain")
    return mapped


def is_name(text: str) -> bool:
    """Whether *text* can name a person: one address, or the id of an account. AP-43."""
    if "@" not in text:
        return _ACCOUNT.fullmatch(text.strip()) is not None
    with suppress(ValueError):
        mailbox(text)
        return True
    return False


def same_name(text: str) -> str:
    """
    The form in which names of people are compared: addresses as `mailbox` writes them; other names,
    such as ids of accounts, without case.
    """
    with suppress(ValueError):
        return mailbox(text)
    return text.strip().lower()


def warning_of(address: str) -> str | None:
    """
    The warning about an address with letters outside ASCII, which many mail servers refuse; None
    for other addresses.
    """
    local = address.rpartition("@")[0]
    if local.isascii():
        return None
    return f"{address}: many mail servers take no mail for a name with letters outside ASCII"
