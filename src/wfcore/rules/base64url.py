"""Base64url without padding, in its one spelling."""

from base64 import urlsafe_b64decode, urlsafe_b64encode


def encoded(value: bytes) -> str:
    """*value* in letters, digits, `-` and `_`."""
    return urlsafe_b64encode(value).rstrip(b"=").decode()


def decoded(text: str) -> bytes:
    """The inverse of `encoded`. Raises `ValueError` for any other spelling of the same bytes."""
    value = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    if encoded(value) != text:
        raise ValueError
    return value
