"""The form of an idempotency key. IK-1."""

from wfcore.errors import InvalidInput

LONGEST_IDEMPOTENCY_KEY = 255


def check_idempotency_key(field: str, key: str) -> None:
    """Raises `InvalidInput` that names *field* if *key* is malformed. IK-1."""
    printable = key.isascii() and key.isprintable()
    if not printable or not 1 <= len(key) <= LONGEST_IDEMPOTENCY_KEY:
        fix = f"must be 1 to {LONGEST_IDEMPOTENCY_KEY} printable ASCII characters"
        raise InvalidInput(field, fix)
