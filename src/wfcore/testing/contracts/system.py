"""
The contracts of clock, ids, tokens, passwords, sealer and offload, as test classes to inherit from.

    class TestMyIds(IdsContract):
        @pytest.fixture
        def new_ids(self):
            return MyIds

The contracts need pytest-asyncio in auto mode.
"""

import asyncio
import re
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Protocol

import pytest

from wfcore.ports.system import Clock, Ids, Offload, Passwords, Sealer, Tokens
from wfcore.rules.auth.api_key import ALPHABET
from wfcore.rules.clock_jumps import HOLD_MS
from wfcore.testing.builders import NOW
from wfcore.testing.contracts.awaited import Awaited
from wfcore.time import HOUR, MINUTE, SECOND, EpochMs


class ClockControl(Protocol):
    """A control that moves the time behind a clock."""

    def advance(self, by_ms: int) -> None:
        """Let time pass on both clocks."""

    def jump(self, by_ms: int) -> None:
        """Set the wall clock; no time passes."""


class ClockContract:
    """
    The promises of `wfcore.ports.system.Clock`. Subclasses provide the fixtures `clock`, over a
    wall clock and a steady clock that stand still, and `turn`, a `ClockControl` that moves both.
    """

    def test_time_passes(self, clock: Clock, turn: ClockControl) -> None:
        """The wall clock counts whole milliseconds."""
        before = clock.now()
        assert isinstance(before, int)
        turn.advance(1_500)
        assert clock.now() == before + 1_500

    def test_deadlines_go_by_the_wall_clock(self, clock: Clock, turn: ClockControl) -> None:
        """Without a jump, deadlines agree with the wall clock, however much time passes."""
        for passed in (0, 1, MINUTE, HOUR, 100 * HOUR):
            turn.advance(passed)
            assert clock.deadline_now() == clock.now()

    @pytest.mark.parametrize("given_jump", [61 * SECOND, -61 * SECOND, 48 * HOUR, -48 * HOUR])
    def test_a_jump_does_not_move_deadlines_for_five_minutes(
        self, clock: Clock, turn: ClockControl, given_jump: int
    ) -> None:
        """
        For five minutes after a jump of more than a minute, deadlines ignore the jump; then they
        follow the wall clock.
        """
        before = clock.deadline_now()
        turn.jump(given_jump)
        assert clock.now() == before + given_jump
        assert clock.deadline_now() == before
        turn.advance(HOLD_MS - 1)
        assert clock.deadline_now() == before + HOLD_MS - 1
        turn.advance(1)
        assert clock.deadline_now() == clock.now() == before + given_jump + HOLD_MS

    @pytest.mark.parametrize("given_jump", [1, -1, MINUTE, -MINUTE])
    def test_a_correction_counts_at_once(
        self, clock: Clock, turn: ClockControl, given_jump: int
    ) -> None:
        """A change of up to a minute is not a jump."""
        clock.deadline_now()
        turn.jump(given_jump)
        assert clock.deadline_now() == clock.now()

    def test_a_jump_that_is_taken_back_was_none(self, clock: Clock, turn: ClockControl) -> None:
        """After a jump forth and back, deadlines continue as without a jump."""
        before = clock.deadline_now()
        turn.jump(HOUR)
        turn.advance(1_000)
        assert clock.deadline_now() == before + 1_000
        turn.jump(-HOUR)
        turn.advance(1_000)
        assert clock.deadline_now() == before + 2_000

    def test_work_goes_by_the_same_time(self, clock: Clock, turn: ClockControl) -> None:
        """Without a jump, the time of work equals the wall clock. EX-30."""
        for passed in (0, 1, MINUTE, 100 * HOUR):
            turn.advance(passed)
            assert clock.service_now() == clock.now()

    @pytest.mark.parametrize("given_back", [2 * SECOND, 10 * MINUTE, 48 * HOUR])
    def test_work_goes_on_while_the_clock_is_behind(
        self, clock: Clock, turn: ClockControl, given_back: int
    ) -> None:
        """
        If the wall clock is set back, the time of work continues a little slower until both agree
        again.
        """
        before = clock.service_now()
        turn.jump(-given_back)
        assert clock.service_now() == before
        for _ in range(20):
            turn.advance(HOLD_MS)
            past, now = before, clock.service_now()
            assert past + HOLD_MS * 0.9 <= now <= past + HOLD_MS
            before = now
        turn.advance(10 * given_back)
        assert clock.service_now() == clock.now()
        turn.advance(1)
        assert clock.service_now() == clock.now()

    def test_work_does_not_follow_a_jump_forward_at_once(
        self, clock: Clock, turn: ClockControl
    ) -> None:
        """A clock that is wrong for less than five minutes has no effect on due times."""
        before = clock.service_now()
        turn.jump(48 * HOUR)
        turn.advance(SECOND)
        assert clock.service_now() == before + SECOND
        turn.jump(-48 * HOUR)
        assert clock.service_now() == clock.now() == before + SECOND


class IdsContract:
    """
    The promises of `wfcore.ports.system.Ids`. Subclasses provide a fixture `new_ids`: each call
    returns a new generator, as in another process.
    """

    MANY = 10_000

    def test_an_id_is_its_prefix_and_plain_letters(self, new_ids: Callable[[], Ids]) -> None:
        """An id needs no quoting in a URL, a file name or a log."""
        for prefix in ("exec", "wf", "art"):
            id = new_ids().new(prefix, NOW)
            assert re.fullmatch(rf"{prefix}_[0-9A-Za-z]{{8,60}}", id), id

    def test_no_id_comes_twice(self, new_ids: Callable[[], Ids]) -> None:
        """All ids differ, however many are made in a millisecond, by any number of processes."""
        makers = [new_ids() for _ in range(4)]
        made = [ids.new("exec", NOW) for _ in range(self.MANY // 4) for ids in makers]
        assert len(set(made)) == len(made)

    def test_ids_ascend(self, new_ids: Callable[[], Ids]) -> None:
        """
        The ids of one generator sort in the order of their creation, even if the clock is set back.
        """
        ids = new_ids()
        times = [NOW, NOW, NOW + 1, NOW, NOW - 3_600_000, NOW + 2, NOW + 2]
        made = [ids.new("exec", EpochMs(at)) for at in times for _ in range(50)]
        assert [pair for pair in pairwise(made) if pair[0] >= pair[1]] == []

    def test_ids_of_several_makers_order_by_time(self, new_ids: Callable[[], Ids]) -> None:
        """
        An id of a later millisecond sorts after an id of an earlier millisecond, whichever
        generator made it.
        """
        made = [new_ids().new("exec", EpochMs(NOW + after)) for after in (0, 1, 10, 60_000)]
        assert made == sorted(made)


class TokensContract:
    """The promises of `wfcore.ports.system.Tokens`. Subclasses provide a fixture `tokens`."""

    @pytest.mark.parametrize("given_length", [1, 16, 36, 43, 200])
    def test_a_token_has_its_length(self, tokens: Tokens, given_length: int) -> None:
        """A token consists of the given number of base62 characters."""
        text = tokens.text(given_length)
        assert len(text) == given_length
        assert set(text) <= set(ALPHABET)

    def test_no_token_comes_twice(self, tokens: Tokens) -> None:
        """Every call returns a different token."""
        assert len({tokens.text(16) for _ in range(2_000)}) == 2_000

    def test_every_character_turns_up_everywhere(self, tokens: Tokens) -> None:
        """
        Every character occurs at the first, a middle and the last place, and none far more often
        than others.
        """
        made = [tokens.text(20) for _ in range(6_200)]
        for place in (0, 10, 19):
            found = [text[place] for text in made]
            counts = [found.count(letter) for letter in ALPHABET]
            assert min(counts) > 40
            assert max(counts) < 200


class PasswordsContract(Awaited):
    """The promises of `wfcore.ports.system.Passwords`. Subclasses provide a fixture `passwords`."""

    async def test_a_password_fits_its_own_hash_alone(self, passwords: Passwords) -> None:
        """A hash matches exactly its own password."""
        hashed = await passwords.hash("correct horse")
        assert await passwords.verify("correct horse", hashed)
        for wrong in ("", "correct hors", "Correct horse", "correct horse ", hashed):
            assert not await passwords.verify(wrong, hashed)

    async def test_a_hash_does_not_show_the_password(self, passwords: Passwords) -> None:
        """The hash does not contain the password."""
        assert "correct horse" not in await passwords.hash("correct horse")

    @pytest.mark.parametrize("given_password", ["ü 雪 🎈", "a" * 1_024, "nul\0inside", " "])
    async def test_any_text_is_a_password(self, passwords: Passwords, given_password: str) -> None:
        """A password may be long, and may contain any characters."""
        assert await passwords.verify(given_password, await passwords.hash(given_password))
        assert not await passwords.verify(
            given_password + "x", await passwords.hash(given_password)
        )

    async def test_nothing_fits_no_hash(self, passwords: Passwords) -> None:
        """Without a hash, no password matches."""
        for password in ("", "None", "correct horse"):
            assert not await passwords.verify(password, None)

    async def test_what_is_no_hash_fits_nothing(self, passwords: Passwords) -> None:
        """A damaged hash matches no password."""
        for damaged in ("", "damaged", "$argon2id$v=19$x"):
            assert not await passwords.verify("correct horse", damaged)


class SealerContract:
    """
    The promises of `wfcore.ports.system.Sealer`. Subclasses provide a fixture `new_sealer`: each
    call returns a sealer with a new key.
    """

    @pytest.mark.parametrize("given_text", ["a", "ü 雪 🎈 nul\0inside", "long " * 20_000])
    def test_what_was_sealed_is_opened(
        self, new_sealer: Callable[[], Sealer], given_text: str
    ) -> None:
        """Any sealed text can be opened for the place for which it was sealed."""
        sealer = new_sealer()
        assert (
            sealer.open(sealer.seal(given_text, "accounts/acc_1"), "accounts/acc_1") == given_text
        )

    def test_sealed_text_shows_nothing(self, new_sealer: Callable[[], Sealer]) -> None:
        """
        A sealed text is the id of the key and printable ASCII, and differs each time for the same
        text.
        """
        sealer = new_sealer()
        first, second = (sealer.seal("a secret", "here") for _ in range(2))
        assert first != second
        assert "secret" not in first
        assert first.isascii()
        assert first.isprintable()
        assert first.partition(".")[0] == sealer.keys[0]

    def test_a_sealed_text_belongs_to_its_place(self, new_sealer: Callable[[], Sealer]) -> None:
        """A sealed text cannot be opened for another record or field."""
        sealer = new_sealer()
        sealed = sealer.seal("a secret", "webhooks/wh_1/secret")
        for place in ("", "webhooks/wh_2/secret", "webhooks/wh_1/secret "):
            with pytest.raises(ValueError, match=r"\w"):
                sealer.open(sealed, place)

    def test_a_changed_text_does_not_open(self, new_sealer: Callable[[], Sealer]) -> None:
        """A sealed text with a changed, removed or added character cannot be opened."""
        sealer = new_sealer()
        sealed = sealer.seal("a secret", "here")
        changed = [sealed[:at] + chr(ord(sealed[at]) ^ 1) + sealed[at + 1 :] for at in range(9, 30)]
        for wrong in (*changed, "", sealed[:-4], f"{sealed}AAAA", sealed.partition(".")[2]):
            with pytest.raises(ValueError, match=r"\w"):
                sealer.open(wrong, "here")

    def test_another_key_opens_nothing(self, new_sealer: Callable[[], Sealer]) -> None:
        """A sealer without the key raises an error and returns no text."""
        with pytest.raises(ValueError, match=r"\w"):
            new_sealer().open(new_sealer().seal("a secret", "here"), "here")

    @pytest.mark.parametrize("given_data", [b"\0", bytes(range(256)), b"long " * 20_000])
    def test_bytes_are_sealed_like_text(
        self, new_sealer: Callable[[], Sealer], given_data: bytes
    ) -> None:
        """
        Sealed bytes start with the id of the key and differ each time. They cannot be opened with
        another key, for another place, or when changed.
        """
        sealer = new_sealer()
        sealed, other = (sealer.seal_bytes(given_data, "here") for _ in range(2))
        assert sealed != other
        assert sealed[:4].hex() == sealer.keys[0]
        assert sealer.open_bytes(sealed, "here") == given_data
        changed = [sealed[:n] + bytes((sealed[n] ^ 1,)) + sealed[n + 1 :] for n in (0, 4, 20, -1)]
        for wrong in (*changed, b"", sealed[:9], sealed[:-4], sealed + b"\0", sealed[4:]):
            with pytest.raises(ValueError, match=r"\w"):
                sealer.open_bytes(wrong, "here")
        with pytest.raises(ValueError, match=r"\w"):
            sealer.open_bytes(sealed, "there")
        with pytest.raises(ValueError, match=r"\w"):
            new_sealer().open_bytes(sealed, "here")

    def test_a_key_that_is_there_stays(self, new_sealer: Callable[[], Sealer]) -> None:
        """`make` adds no key if there is a key, and sealed text can be opened as before."""
        sealer = new_sealer()
        sealed, keys = sealer.seal("a secret", "here"), tuple(sealer.keys)
        sealer.make()
        assert tuple(sealer.keys) == keys
        assert sealer.open(sealed, "here") == "a secret"


class OffloadContract(Awaited):
    """The promises of `wfcore.ports.system.Offload`. Subclasses provide a fixture `offload`."""

    async def test_it_gives_what_the_work_gives(self, offload: Offload) -> None:
        """Each caller gets the result of its own work, however many callers there are at once."""
        results = await asyncio.gather(*(offload(partial(pow, n, 2)) for n in range(20)))
        assert results == [n * n for n in range(20)]

    async def test_it_raises_what_the_work_raises(self, offload: Offload) -> None:
        """An exception of the work reaches the caller unchanged."""

        def refuses() -> None:
            raise LookupError("nothing of that name")

        with pytest.raises(LookupError, match="nothing of that name"):
            await offload(refuses)
