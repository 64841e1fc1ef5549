"""How many logins are looked at in a minute, of one address and in all. SE-6."""

import pytest

from wfcore.errors import TooManyLogins
from wfcore.rules.auth.session import (
    LinkTraffic,
    LoginTraffic,
    SignInMethod,
    is_look_alike,
    one_client,
)
from wfcore.rules.limits import LOGINS_EACH, LOGINS_IN_ALL
from wfcore.time import MINUTE, EpochMs

NOW = EpochMs(1_763_700_000_000 - 1_763_700_000_000 % MINUTE)


def admitted(traffic: LoginTraffic, address: str | None, tries: int, now: int = NOW) -> int:
    """How many of so many tries were let through."""
    count = 0
    for _ in range(tries):
        try:
            traffic.admit(address, EpochMs(now))
            count += 1
        except TooManyLogins:
            pass
    return count


def test_one_address_locks_nobody_else_out():
    """Whatever it tries, the others have all that they would have had without it."""
    traffic = LoginTraffic()
    assert admitted(traffic, "192.0.2.1", 100_000) == LOGINS_EACH
    others = [admitted(traffic, f"192.0.2.{n}", LOGINS_EACH) for n in range(2, 7)]
    assert others == [LOGINS_EACH] * 5


def test_all_together_may_try_so_many():
    """A crowd of addresses does not keep the processor busy either."""
    traffic = LoginTraffic()
    tries = [admitted(traffic, f"10.0.{n // 256}.{n % 256}", 1) for n in range(5_000)]
    assert sum(tries) == LOGINS_IN_ALL


def test_no_more_addresses_are_remembered_than_logins_let_through():
    """Memory does not grow with those that are refused, nor from minute to minute."""
    traffic = LoginTraffic()
    for n in range(5_000):
        admitted(traffic, f"2001:db8:{n:x}::1", 1, NOW + n // 1_000 * MINUTE)
    assert len(traffic._of) == LOGINS_IN_ALL


def test_the_next_minute_begins_anew():
    """The error says when; a clock that was set back locks nobody out."""
    traffic = LoginTraffic()
    admitted(traffic, None, LOGINS_EACH)
    for left, seconds in ((MINUTE - 1, 60), (1_001, 2), (1_000, 1), (1, 1)):
        with pytest.raises(TooManyLogins) as refusal:
            traffic.admit(None, EpochMs(NOW + MINUTE - left))
        assert refusal.value.retry_after_s == seconds
    for now in (NOW + MINUTE, NOW - MINUTE):
        assert admitted(traffic, None, LOGINS_EACH + 1, now) == LOGINS_EACH


def test_an_office_behind_one_address_signs_in():
    """Logins that succeed do not count; one account takes back one in a minute. SE-6."""
    traffic = LoginTraffic()
    for number in range(5 * LOGINS_EACH):
        traffic.admit("192.0.2.1", NOW)
        traffic.succeeded("192.0.2.1", f"acc_{number}")
    for _ in range(LOGINS_EACH):
        traffic.admit("192.0.2.1", NOW)
        traffic.succeeded("192.0.2.1", "acc_1")
    with pytest.raises(TooManyLogins):
        traffic.admit("192.0.2.1", NOW)
    assert admitted(traffic, "192.0.2.1", 1, NOW + MINUTE) == 1


def test_links_and_passwords_do_not_use_up_each_other():
    """Each way to sign in has the limit for itself. SE-6."""
    traffic = LoginTraffic()
    assert admitted(traffic, "192.0.2.1", 50) == LOGINS_EACH
    for way in (SignInMethod.LINK, SignInMethod.MAIL):
        for _ in range(LOGINS_EACH):
            traffic.admit("192.0.2.1", NOW, way)
        with pytest.raises(TooManyLogins):
            traffic.admit("192.0.2.1", NOW, way)


@pytest.mark.parametrize(
    ("address", "client"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::ffff:1", "2001:db8::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("unix", "unix"),
    ],
)
def test_a_client_is_an_address_or_a_network_of_its_own(address: str, client: str):
    """Whoever has one IPv6 address has 2^64 of them."""
    assert one_client(address) == client


def test_an_email_is_mailed_five_links_an_hour() -> None:
    """However it is written; others are not concerned, and the next hour begins anew. SE-10."""
    traffic, hour = LinkTraffic(), 60 * MINUTE
    start = EpochMs(NOW - NOW % hour)
    names = ("ann@example.org", " ANN@example.org ", "Ann@Example.org")
    asked = [traffic.admits(names[n % 3], EpochMs(start + n)) for n in range(7)]
    assert asked == [True] * 5 + [False] * 2
    assert traffic.admits("bob@example.org", start)
    for name in ("stra\u00dfe@example.org", "strasse@example.org"):
        assert [traffic.admits(name, start) for _ in range(5)] == [True] * 5
    assert not traffic.admits("ann@example.org", EpochMs(start + hour - 1))
    assert traffic.admits("ann@example.org", EpochMs(start + hour))
    assert traffic.admits("ann@example.org", EpochMs(start - 1)), "a clock that was set back"


def test_a_name_of_any_length_takes_little_memory() -> None:
    """Beyond what an email may have, names are one. SE-10."""
    traffic = LinkTraffic()
    longest = "a" * 320
    for tail in ("b", "c", "d", "e", "f"):
        assert traffic.admits(f"{longest}{tail}", NOW)
    assert not traffic.admits(longest, NOW)
    assert traffic.admits(longest[:-1], NOW)
    assert [*map(len, traffic._of)] == [320, 319]


def test_a_look_alike_becomes_another_email_in_lower_case():
    """SE-9: a Kelvin sign is no k; letters that stay what they are may be in a name."""
    assert is_look_alike("an\u212a@example.org")
    for email in ("ank@example.org", "ANK@EXAMPLE.ORG", "j\u00fcrgen@example.org"):
        assert not is_look_alike(email)
