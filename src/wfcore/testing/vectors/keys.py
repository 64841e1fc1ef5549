"""Vectors of API keys: format, checksum, and the places of a key in a request."""

from typing import Any

from wfcore.errors import Unauthenticated
from wfcore.rules.auth.api_key import ALPHABET, checksum, compose, parse, presented_key

ABOUT = (
    "API keys: `wfk_<id>_<secret>`. The id has 8 to 60 characters of base62 (0-9, A-Z, a-z), "
    "the secret 36 and a checksum of 6: the first 8 bytes of SHA-256 over `id_random` as an "
    "unsigned big-endian number, modulo 62^6, in base62 with leading zeros."
)
ID, RANDOM = "Ab1Cd2Ef3Gh4Ij5K", ALPHABET[:36]
PARTS = {
    "letters and digits": {"id": ID, "random": RANDOM},
    "zeros": {"id": "0" * 16, "random": "0" * 36},
    "the last digit everywhere": {"id": "z" * 16, "random": "z" * 36},
    "another id, same secret": {"id": ID[::-1], "random": RANDOM},
}
KEY = compose(ID, RANDOM)
TEXTS = {
    "a whole key": {"text": KEY},
    "a copy without its last character": {"text": KEY[:-1]},
    "one letter of the secret is another": {"text": KEY.replace("_0123", "_0124")},
    "one letter of the id is another": {"text": KEY.replace("Ab1", "Ab2")},
    "one letter of the checksum is another": {"text": KEY[:-1] + ("0" if KEY[-1] != "0" else "1")},
    "another prefix": {"text": KEY.replace("wfk", "wfx")},
    "the prefix in capitals": {"text": KEY.replace("wfk", "WFK")},
    "a blank at the end": {"text": f"{KEY} "},
    "nothing": {"text": ""},
    "three parts of nothing": {"text": "wfk__"},
}


def _carried(bearer: Any = (), x_api_key: Any = (), query: Any = ()) -> dict[str, Any]:
    return {"authorization": [*bearer], "xApiKey": [*x_api_key], "query": [*query]}


WAYS = {
    "Bearer": _carried(["Bearer one"]),
    "the scheme in any case": _carried(["bEaReR one"]),
    "X-API-Key": _carried(x_api_key=["two"]),
    "the query": _carried(query=["three"]),
    "Bearer before all others": _carried(["Bearer one"], ["two"], ["three"]),
    "X-API-Key before the query": _carried((), ["two"], ["three"]),
    "another scheme is not the first way": _carried(["Basic abc"], ["two"]),
    "an empty Bearer is not there": _carried(["Bearer "], ["two"]),
    "an empty header is not there": _carried((), [""], ["three"]),
    "the same value twice": _carried((), ["two", "two"]),
    "two values for one way": _carried((), ["two", "other"]),
    "two Authorization headers": _carried(["Bearer one", "Bearer other"]),
    "two Authorization headers of two schemes": _carried(["Bearer one", "Basic abc"]),
    "nothing at all": _carried(),
}


def _composed(given: Any) -> Any:
    id, random = given["id"], given["random"]
    return {"key": compose(id, random), "checksum": checksum(id, random)}


def _parsed(given: Any) -> Any:
    try:
        presented = parse(given["text"])
    except Unauthenticated as refused:
        return {"error": refused.reason.value}
    return {"id": presented.id, "secret": presented.secret}


def _found(given: Any) -> Any:
    try:
        key = presented_key(given["authorization"], given["xApiKey"], given["query"])
    except Unauthenticated as refused:
        return {"error": refused.reason.value}
    return {"key": key}


GROUPS = {
    "form": ("A key's text from its parts.", PARTS, _composed),
    "accepted": (
        "Which texts are keys; others are refused unseen.",
        TEXTS,
        _parsed,
    ),
    "carried": ("Which of several values of a request counts.", WAYS, _found),
}
