"""The stored keys that sign links."""

from attrs import field, frozen

from wfcore.time import EpochMs


@frozen
class SigningKey:
    """A key in the store that signs links or once signed links. `id`: a digest of the key."""

    id: str
    made_at: EpochMs
    key: str = field(repr=False)


@frozen
class SigningKeys:
    """
    All signing keys, as one record. The newest key comes first and signs. `retired`: ids of keys
    from the servers' configuration that are no longer valid.
    """

    id: str
    keys: tuple[SigningKey, ...]
    retired: tuple[str, ...] = ()
    version: int = 0
