"""Keys as people write them, and the sealer without a store."""

import pytest

from adapters_store.sealing import AeadSealer, id_of, keys_in, new_key


@pytest.mark.parametrize("text", ["", "# nothing", "wfs_short", "hunter2hunter2", f"{'A' * 47}"])
def test_what_is_no_key_is_refused_without_being_told(text: str) -> None:
    """The message says what a key looks like and how to make one."""
    with pytest.raises(ValueError, match="wfcore seal key makes one") as refusal:
        keys_in(text)
    assert not text.strip("# ") or text not in str(refusal.value)


def test_keys_are_written_as_people_write_lists() -> None:
    """By lines, blanks or commas, with comments; each counts once, the first one seals."""
    one, two = new_key(), new_key()
    assert list(keys_in(f"# new\n{one}, {two} {one} # old\n")) == [one, two]
    assert len({id_of(new_key()) for _ in range(50)}) == 50


def test_the_same_text_never_looks_the_same() -> None:
    """Two rows that hold the same secret cannot be told to."""
    sealer = AeadSealer([new_key()])
    assert len({sealer.seal("same", "here") for _ in range(100)}) == 100
