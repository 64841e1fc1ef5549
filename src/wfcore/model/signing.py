"""Keys that sign links, as the store keeps them."""

from attrs import field, frozen

from wfcore.time import EpochMs


@frozen
class SigningKey:
    """A key that the store keeps: it signs links, or did. `id`: a digest of it."""

    id: str
    made_at: EpochMs
    key: str = field(repr=False)


@frozen
class SigningKeys:
    """
    All of them, one record: the newest comes first and signs. `retired`: ids of keys that servers
    were given and that are good no longer.
    """

    id: str
    keys: tuple[SigningKey, ...]
    retired: tuple[str, ...] = ()
    version: int = 0
