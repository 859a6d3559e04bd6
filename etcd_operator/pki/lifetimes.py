"""When certificates are renewed: leafs and CAs when two thirds of their life have passed.

A CA lives at least three times as long as its leafs. So a leaf that is issued just before the CA is renewed
still has its whole life.
"""

from datetime import datetime, timedelta

from etcd_operator.formats import duration_text
from etcd_operator.pki.authority import BACKDATING
from etcd_operator.pki.description import Description

RATIO = 3
"""How many lives of a leaf a CA lives, at least."""


def renewal(found: Description, lasts: timedelta | None = None) -> datetime:
    """From when on a leaf or a CA is renewed: then a third of its life is left.

    lasts: how long it is to live by now, if that may be shorter.
    """
    issued = min(found.not_before + BACKDATING, found.not_after)
    life = found.not_after - issued
    return found.not_after - life / 3 if lasts is None or lasts >= life else issued + lasts * 2 / 3


def is_due(found: Description, now: datetime, lasts: timedelta | None = None) -> bool:
    """Whether it is to be renewed, or has expired. lasts: see `renewal`."""
    return now >= renewal(found, lasts)


def is_late(found: Description, now: datetime) -> bool:
    """Whether half of the time is over in which it should have been renewed."""
    due = renewal(found)
    return now - due > (found.not_after - due) / 2


def refusal(leaf: timedelta, ca: timedelta) -> str:
    """Why such durations are refused; empty if they are not."""
    if ca >= RATIO * leaf:
        return ""
    return (
        f"a CA must live at least {RATIO} times as long as its leafs: "
        f"{duration_text(int(ca.total_seconds()))} is less than {RATIO} times "
        f"{duration_text(int(leaf.total_seconds()))}"
    )
