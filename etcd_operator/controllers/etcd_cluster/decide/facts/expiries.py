"""When the certificates of a cluster end, by kind: what metrics and a condition report."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from etcd_operator.controllers.etcd_cluster.decide.certificates.state import Side, Situation, SuppliedFacts
from etcd_operator.controllers.etcd_cluster.decide.fact import fact
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.pki import lifetimes
from etcd_operator.pki.description import Description


@dataclass(frozen=True, slots=True, kw_only=True)
class Expiry:
    """The certificate of a kind that ends first."""

    kind: str  # a side for its leafs, or that and `-ca`
    renewal: datetime  # when it is due
    end: datetime
    is_late: bool  # it should have been renewed for long


@fact
def expiries(state: ClusterState) -> tuple[Expiry, ...]:
    """Of each kind that there is."""
    own = (found for side, each in state.tls.sides for found in _of(side, each))
    return (*own, *(_supplied(use, each) for use, each in state.tls.supplied if use != "operator"))


def _supplied(kind: str, found: SuppliedFacts) -> Expiry:
    """Of a certificate of the user, who may renew it later than the operator would."""
    return Expiry(
        kind=kind, renewal=lifetimes.renewal(found.leaf), end=found.leaf.not_after, is_late=found.is_late
    )


def _of(side: Side, found: Situation) -> Iterator[Expiry]:
    leafs = [member.files.leaf for member in found.members if member.files is not None]
    leafs += [client.leaf for client in found.clients if client.leaf is not None]
    leafs += [each.leaf for each in found.record.leafs]
    if leafs:
        yield _first(side, leafs, found.now)
    cas = [ca for ca in found.record.trusted if not found.record.leafs or ca not in found.record.unused]
    yield _first(f"{side}-ca", cas, found.now, found.lasts)


def _first(
    kind: str, certificates: list[Description], now: datetime, lasts: timedelta | None = None
) -> Expiry:
    first = min(certificates, key=lambda each: each.not_after)
    is_late = lifetimes.is_late(first, now)
    return Expiry(kind=kind, renewal=lifetimes.renewal(first, lasts), end=first.not_after, is_late=is_late)


@fact
def near_end(state: ClusterState) -> tuple[Expiry, ...]:
    """Those that should have been renewed, and were not."""
    return tuple(each for each in expiries(state) if each.is_late)
