"""Encoded answers of records that did not change: polls ask for the same one again and again."""

from collections.abc import Callable

from adapters_http.json_text import dump_json
from wfcore.wire.converter import plain

MOST = 1_024
LARGEST = 16_384


class Answers:
    """The latest answers by record and version; at most 16 MB of them."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, bytes]] = {}

    def of(self, id: str, version: int, view: Callable[[], object]) -> bytes:
        """The JSON of *view*, which depends on nothing but the record of that version."""
        known = self._known.get(id)
        if known is not None and known[0] == version:
            return known[1]
        body = dump_json(plain(view()))
        if len(body) <= LARGEST:
            self._known.pop(id, None)
            self._known[id] = (version, body)
            if len(self._known) > MOST:
                del self._known[next(iter(self._known))]
        return body
