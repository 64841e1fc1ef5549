"""A machine of a user, as small as one can be that is of use: an order is paid and shipped."""

from enum import StrEnum
from typing import Any, ClassVar

from attrs import evolve, frozen
from hypothesis import strategies as st

from wfcore.machine import Machine, Row
from wfcore.testing.walks.walking import MachineWalk


class S(StrEnum):
    OPEN = "OPEN"
    PAID = "PAID"
    SHIPPED = "SHIPPED"
    GONE = "GONE"


@frozen
class Paid:
    amount: int


@frozen
class Shipped:
    """Off it goes."""


@frozen
class Cancelled:
    """The order is called off, by whomever."""


@frozen
class Regretted(Cancelled):
    """The customer changed their mind."""


@frozen
class SoldOut(Cancelled):
    """The shop has nothing left to ship."""


ORDER = Machine(
    name="order",
    initial=S.OPEN,
    final=frozenset({S.SHIPPED, S.GONE}),
    rows=(
        Row(S.OPEN, Paid, S.PAID, "order 1"),
        Row(S.OPEN, Cancelled, S.GONE, "order 2"),
        Row(S.PAID, Shipped, S.SHIPPED, "order 3"),
        Row(S.PAID, Cancelled, S.GONE, "order 4"),
    ),
)


@frozen
class Order:
    price: int
    status: S = S.OPEN
    paid: int = 0


def advance(order: Order, fact: Any) -> Order:
    status = ORDER.target(order.status, type(fact))
    match fact:
        case Paid(amount):
            return evolve(order, status=status, paid=order.paid + amount)
        case Cancelled():
            return evolve(order, status=status, paid=0)
        case _:
            return evolve(order, status=status)


class OrderWalk(MachineWalk):
    machine = ORDER
    first = st.builds(Order, st.integers(1, 9))
    facts: ClassVar = {
        Paid: st.builds(Paid, st.integers(1, 9)),
        Shipped: st.builds(Shipped),
        Regretted: st.builds(Regretted),
        SoldOut: st.builds(SoldOut),
    }

    def fold(self, record: Order, fact: Any) -> Order:
        return advance(record, fact)
