"""Certificates as the decisions see them, made without cryptography."""

from datetime import UTC, datetime, timedelta
from itertools import count

from etcd_operator.controllers.etcd_cluster.decide.certificates.state import (
    Files,
    ObservedCertificates,
    Record,
    Situation,
)
from etcd_operator.pki.authority import BACKDATING
from etcd_operator.pki.description import Description

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
LEAF_LIFE, CA_LIFE = 9 * DAY, 27 * DAY

_numbers = count(1)


def certificate(
    *, key: str, issuer: str, since: datetime, life: timedelta, is_ca: bool, end: datetime | None = None
) -> Description:
    number = format(next(_numbers), "x")
    until = since + life
    return Description(
        serial=number,
        subject=f"CN={key}",
        common_name=key,
        issuer=f"CN={issuer}",
        dns=(),
        addresses=(),
        not_before=since - BACKDATING,
        not_after=until if end is None else min(until, end),
        is_ca=is_ca,
        usages=frozenset(),
        key_id=key,
        issuer_key_id=issuer,
        fingerprint=number,
    )


def ca(key: str, *, since: datetime = NOW, life: timedelta = CA_LIFE) -> Description:
    return certificate(key=key, issuer=key, since=since, life=life, is_ca=True)


def leaf(issuer: Description, *, since: datetime = NOW, life: timedelta = LEAF_LIFE) -> Description:
    return certificate(
        key="leaf", issuer=issuer.key_id, since=since, life=life, is_ca=False, end=issuer.not_after
    )


A, B, C = ca("a"), ca("b"), ca("c")
STABLE = Record(trusted=(A, B), issuer="a", since=NOW - DAY)


def member(
    name: str = "m0",
    *,
    issuer: Description = A,
    bundle: tuple[Description, ...] = (A, B),
    loaded: tuple[Description, ...] | None = (A, B),
    is_running: bool = True,
    is_proven: bool = True,
    is_unwanted: bool = False,
    since: datetime = NOW,
) -> ObservedCertificates:
    files = Files(leaf=leaf(issuer, since=since), bundle=bundle)
    presented = files.leaf.serial if is_proven else "former"
    return ObservedCertificates(
        name=name,
        files=files,
        is_running=is_running,
        presented=presented,
        loaded=loaded,
        is_unwanted=is_unwanted,
    )


def situation(
    *members: ObservedCertificates,
    record: Record = STABLE,
    now: datetime = NOW,
    obstacle: str = "",
    request: str = "",
    grace: timedelta = timedelta(),
) -> Situation:
    return Situation(record=record, members=members, now=now, obstacle=obstacle, request=request, grace=grace)
