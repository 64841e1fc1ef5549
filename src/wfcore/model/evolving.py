"""
`evolve` for the records that change all the time.

`attrs.evolve` asks the class for its fields and runs its whole `__init__`, which for an execution
is a large part of a transition. A frozen class without slots has all its fields in one
dictionary, and a copy of that is the copy.
"""

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from attrs import evolve  # so that names and types of the changes are checked
else:
    R = TypeVar("R")

    def evolve(record: R, **changes: Any) -> R:
        """
        A copy of *record*, of a `@frozen(slots=False)` class without converters, with *changes*.

        Raises `TypeError` for a name that is no field.
        """
        fields = record.__dict__ | changes
        if len(fields) != len(record.__dict__):
            unknown = ", ".join(sorted(changes.keys() - record.__dict__.keys()))
            raise TypeError(f"{type(record).__name__} has no field {unknown}")
        copy = object.__new__(type(record))
        object.__setattr__(copy, "__dict__", fields)
        return copy


__all__ = ["evolve"]
