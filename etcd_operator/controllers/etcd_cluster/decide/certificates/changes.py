"""The changes of a record. New certificates are made by the shell, which has the keys."""

from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import assert_never

from etcd_operator.controllers.etcd_cluster.decide.certificates.state import Phase, Record
from etcd_operator.pki.description import Description


class Change(StrEnum):
    """What is done to a record."""

    RENEW = "Renew"  # every trusted CA gets a new certificate for its key
    BEGIN = "Begin"  # a rotation; a next CA is made if there is none
    SWITCH = "Switch"  # the next CA becomes the issuer
    SETTLE = "Settle"  # no leaf of the old CA is left
    DROP = "Drop"  # the old CA is no longer trusted; a next one is made
    END = "End"  # the rotation is over
    DATE = "Date"  # what was recorded is published: clients have their time from now on


def makes_ca(record: Record, change: Change) -> bool:
    """Whether a change needs a new CA."""
    return change is Change.DROP or (change is Change.BEGIN and record.next is None)


def changed(
    record: Record,
    change: Change,
    *,
    now: datetime,
    request: str = "",
    made: tuple[Description, ...] = (),
) -> Record:
    """The record after a change.

    made: for `RENEW` all CAs of `trusted` in their order, otherwise the new CA if `makes_ca`.
    """
    match change:
        case Change.RENEW:
            return replace(record, trusted=made)
        case Change.BEGIN:
            since = None if made else record.since
            trusted = record.trusted + made
            return replace(record, phase=Phase.TRUSTING, trusted=trusted, since=since, request=request)
        case Change.SWITCH:
            issuer = record.next.key_id if record.next is not None else record.issuer
            return replace(record, phase=Phase.REISSUING, issuer=issuer)
        case Change.SETTLE:
            return replace(record, phase=Phase.DROPPING, since=now)
        case Change.DROP:
            kept = tuple(ca for ca in record.trusted if ca.key_id == record.issuer)
            return replace(record, trusted=kept + made, since=None)
        case Change.DATE:
            return replace(record, since=now)
        case Change.END:
            return replace(record, phase=Phase.STABLE)
        case _:
            assert_never(change)
