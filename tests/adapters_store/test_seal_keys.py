"""Keys as people write them, and the sealer without a store."""

from pathlib import Path

import pytest

from adapters_store.sql.sealing import AeadSealer, id_of, keys_in, new_key


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


def test_a_word_that_is_no_key_is_told_by_its_place() -> None:
    """Among several, the message counts from one."""
    with pytest.raises(ValueError, match=r"^key 2 is none"):
        keys_in(f"{new_key()} wfs_short")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time of the sealer, which stands still; a list of one."""
    at = [1_000.0]
    monkeypatch.setattr("adapters_store.sql.sealing.monotonic", lambda: at[0])
    return at


def test_a_new_key_in_the_file_opens_at_once_and_seals_soon(
    tmp_path: Path, clock: list[float]
) -> None:
    """What another process sealed with it is read; a second later it seals here, too."""
    file, old, fresh = tmp_path / "seal.key", new_key(), new_key()
    file.write_text(old)
    server, late = AeadSealer(file=file), AeadSealer(file=file)
    (tmp_path / "new").write_text(f"{fresh} {old}")
    (tmp_path / "new").replace(file)
    assert server.seal("text", "here").startswith(id_of(old))
    assert server.open(AeadSealer([fresh]).seal("text", "here"), "here") == "text"
    assert late.keys == (id_of(fresh), id_of(old))
    clock[0] += 1.5
    assert server.seal("text", "here").startswith(id_of(fresh))


def test_a_file_that_is_broken_changes_nothing_and_is_looked_at_again(
    tmp_path: Path, clock: list[float]
) -> None:
    """Somebody is in the middle of writing it."""
    file, old, fresh = tmp_path / "seal.key", new_key(), new_key()
    file.write_text(old)
    sealer = AeadSealer(file=file)
    file.write_text("wfs_half")
    clock[0] += 1.5
    assert sealer.seal("text", "here").startswith(id_of(old))
    file.write_text(fresh)
    assert sealer.seal("text", "here").startswith(id_of(old))
    clock[0] += 1.5
    assert sealer.seal("text", "here").startswith(id_of(fresh))


def test_the_same_text_never_looks_the_same() -> None:
    """Two rows that hold the same secret cannot be told to."""
    sealer = AeadSealer([new_key()])
    assert len({sealer.seal("same", "here") for _ in range(100)}) == 100
