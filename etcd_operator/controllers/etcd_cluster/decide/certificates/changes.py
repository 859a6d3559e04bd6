"""The changes of a record. New certificates are made by the shell, which has the keys."""

from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import assert_never

from etcd_operator.controllers.etcd_cluster.decide.certificates.state import IssuedLeaf, Phase, Record
from etcd_operator.pki.description import Description


class Change(StrEnum):
    """What is done to a record."""

    RENEW = "Renew"  # every trusted CA gets a new certificate for its key
    BEGIN = "Begin"  # a rotation; a next CA is made if there is none
    SWITCH = "Switch"  # the next CA becomes the issuer
    SETTLE = "Settle"  # no leaf of the old CA is left
    DROP = "Drop"  # the old CA is no longer trusted; a next one is made
    END = "End"  # the rotation is over
    TRUST = "Trust"  # the CAs of what cert-manager has issued are trusted
    TAKE = "Take"  # the leafs that cert-manager has issued become those of members
    FORGET = "Forget"  # CAs are no longer trusted of which neither a leaf nor a client needs one
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
    offered: tuple[IssuedLeaf, ...] = (),
    keeps: timedelta = timedelta(),
) -> Record:
    """The record after a change.

    made: for `RENEW` all CAs of `trusted` in their order, otherwise the new CA if `makes_ca`. offered: for
    `TRUST` and `TAKE`. keeps: for `FORGET`, see `Record.outlived`.
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
        case Change.TRUST | Change.TAKE | Change.FORGET:
            return replace(_following(record, change, offered, now, keeps), changed=now)
        case Change.DATE:
            return replace(record, since=now)
        case Change.END:
            since = now if record.leafs else record.since
            return _dated(replace(record, phase=Phase.STABLE, since=since), now)
        case _:
            assert_never(change)


def _following(
    record: Record, change: Change, offered: tuple[IssuedLeaf, ...], now: datetime, keeps: timedelta
) -> Record:
    """The record of an issuer of cert-manager."""
    if change is Change.TRUST:
        return replace(_trusting(record, offered), since=None)
    if change is Change.TAKE:
        return _dated(_taking(record, offered), now)
    gone = record.outlived(now, keeps)
    kept = tuple(ca for ca in record.trusted if ca not in gone)
    return _dated(replace(record, trusted=kept, since=None), now)


def _dated(record: Record, now: datetime) -> Record:
    """With since when CAs of cert-manager are not needed."""
    if not record.leafs:
        return record
    known = dict(record.former)
    return replace(record, former=tuple((ca.key_id, known.get(ca.key_id, now)) for ca in record.unused))


def _trusting(record: Record, offered: tuple[IssuedLeaf, ...]) -> Record:
    """With the CAs of what is offered, behind those that are trusted; of one that was renewed, the latest."""
    found: dict[str, Description] = {}
    for ca in (*record.trusted, *(each.ca for each in offered)):
        found[ca.key_id] = max(found.get(ca.key_id, ca), ca, key=lambda each: each.not_after)
    phase = Phase.TRUSTING if len(found) > len(record.trusted) else record.phase
    return replace(record, phase=phase, trusted=tuple(found.values()))


def _taking(record: Record, offered: tuple[IssuedLeaf, ...]) -> Record:
    """With what is offered. The CA that signs comes behind all before it: so no issuer is an earlier one.

    One that signs already keeps its place: those behind it have signed nothing yet (`Record.untried`).
    """
    issuer = offered[0].ca.key_id
    if issuer == record.issuer:
        return replace(record, phase=_taken(record), leafs=offered)
    others = tuple(ca for ca in record.trusted if ca.key_id != issuer)
    signing = tuple(ca for ca in record.trusted if ca.key_id == issuer)
    return replace(record, phase=_taken(record), trusted=others + signing, leafs=offered, issuer=issuer)


def _taken(record: Record) -> Phase:
    return Phase.REISSUING if record.phase is Phase.TRUSTING else record.phase
