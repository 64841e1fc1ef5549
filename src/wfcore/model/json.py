"""JSON as Python sees it: what payloads, outputs and rows are made of."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias, Union

Json: TypeAlias = Union[None, bool, int, float, str, "Sequence[Json]", "Mapping[str, Json]"]
JsonObject: TypeAlias = Mapping[str, Json]
