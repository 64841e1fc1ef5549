"""Page and size from text. Contract §6: `page` counts from 1, `size` is cut to the maximum."""

from wfcore.errors import InvalidInput
from wfcore.model.page import PageRequest

_LARGEST_PAGE = 10**9
_DIGITS = 20
"""More would only be a larger number than the largest, and slow to read."""
_PAST_ANY = f"must be at most {_LARGEST_PAGE:,}"


def page_request(page: str | None, size: str | None, sizes: tuple[int, int]) -> PageRequest:
    """
    The page asked for; *sizes* are default and maximum. PG-1, PG-2.

    Raises `InvalidInput` for anything that is no positive integer, and for a page that no
    list could have.
    """
    default, largest = sizes
    number = _positive("page", page, 1)
    if number > _LARGEST_PAGE:
        raise InvalidInput("page", _PAST_ANY)
    return PageRequest(number, min(_positive("size", size, default), largest))


def _positive(field: str, text: str | None, default: int) -> int:
    if text is None:
        return default
    digits = text.lstrip("0")[:_DIGITS]
    if not (text.isascii() and text.isdigit() and digits):
        raise InvalidInput(field, "must be a positive integer")
    return int(digits)
