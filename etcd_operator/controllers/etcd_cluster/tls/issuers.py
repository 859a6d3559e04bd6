"""What cert-manager has issued for clusters: read now and then, and checked, as the Secrets of users are.

Nothing of it is used here: what members have is on record (`decide.certificates.issuers`).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from etcd_operator.api.meta import RawObject
from etcd_operator.clock import Clock
from etcd_operator.controllers.etcd_cluster.decide.certificates.state import SIDES, Side
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.dialects.base import Dialect
from etcd_operator.controllers.etcd_cluster.manifests.authorities import decoded
from etcd_operator.controllers.etcd_cluster.manifests.cert_manager import (
    certificate,
    certificate_name,
    files_of,
    is_as_asked,
    issuer_of,
    leaf_of,
    selector,
)
from etcd_operator.controllers.etcd_cluster.manifests.issued import Offer
from etcd_operator.controllers.etcd_cluster.members.protocol import Scope
from etcd_operator.controllers.etcd_cluster.tls.offers import (
    failure,
    offered,
    require_source,
    require_stored,
    unissued,
)
from etcd_operator.controllers.shared.secret_reads import KEPT_SECONDS, Reads
from etcd_operator.errors import NotFound, OperatorError, RetryableError, TerminalError
from etcd_operator.formats import instant
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.client import Client
from etcd_operator.kube.views import Certificate, Secret
from etcd_operator.pki.chains import anchor
from etcd_operator.pki.errors import BadCertificate
from etcd_operator.pki.profiles import Leaf, Usage
from etcd_operator.pki.secrets import STANDARD, Demand, read

NOT_INSTALLED = (
    "cert-manager is not installed: the API server has no certificates.cert-manager.io. Install it, or use "
    "another source of certificates"
)

UNISSUED_SECONDS = 5.0
"""After so long it is read again what cert-manager has not issued yet."""


NEW_SECONDS = 30.0
"""For so long cert-manager may not have issued what it is asked for."""


class NotInstalled(BadCertificate):
    """The API server does not know the resources of cert-manager."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """What there is for one cluster."""

    offers: Mapping[Side, tuple[Offer, ...]] = field(default_factory=dict)  # of each side all, or none
    is_unrequested: bool = False  # a Certificate is missing, or asks for something else
    problem: str = ""  # why something has not been issued, or cannot be used
    is_pending: bool = False  # nothing has failed: cert-manager needs a moment


NONE = Found()

_Wanted = Mapping[tuple[Side, str], RawObject]
"""The Certificates of a cluster, by side and file. They name its UID."""


@dataclass(eq=False, kw_only=True)
class Issuers:
    """Of the clusters of one API group."""

    client: Client
    clock: Clock
    dialect: Dialect[Any]
    reads: Reads
    # what was found for what is wanted, or why nothing can be listed, until when it is believed (monotonic)
    _known: dict[Key, tuple[_Wanted, Found | OperatorError, float]] = field(default_factory=dict, repr=False)
    # when cert-manager was last asked for something else (monotonic)
    _requested: dict[Key, float] = field(default_factory=dict)

    def found(self, desired: DesiredCluster, zone: str) -> Found:
        """What cert-manager has issued; nothing where it is not asked.

        Raises NotInstalled, and the errors of `Client`.
        """
        wanted = self._wanted(desired, zone)
        if not wanted:
            return NONE
        before, known, until = self._known.get(desired.key, ({}, NONE, 0.0))
        if before == wanted and self.clock.monotonic() < until:
            if isinstance(known, OperatorError):
                raise known.with_traceback(None)
            return known
        try:
            listed = self._listed(desired)
        except (RetryableError, TerminalError) as error:
            self._known[desired.key] = wanted, error, self.clock.monotonic() + UNISSUED_SECONDS
            raise
        found = self._evaluated(desired, zone, wanted, listed)
        is_ready = all(each.is_ready for each in listed.values())
        is_whole = is_ready and not (found.problem or found.is_unrequested)
        lasts = KEPT_SECONDS if is_whole else UNISSUED_SECONDS
        self._known[desired.key] = wanted, found, self.clock.monotonic() + lasts
        return found

    def request(self, scope: Scope, zone: str) -> None:
        """Make the Certificates that are missing, and change those that ask for something else.

        Raises NotInstalled, Overridden if they are stored otherwise, and the errors of `Objects`.
        """
        self._known.pop(scope.desired.key, None)
        self._requested[scope.desired.key] = self.clock.monotonic()
        listed, wanted = self._listed(scope.desired), self._wanted(scope.desired, zone).values()
        for body in wanted:
            found = listed.get(body["metadata"]["name"])
            if found is None:
                scope.create(resources.CERTIFICATES, body, "CertificateRequested")
            elif not is_as_asked(found.spec, body["spec"]):
                names = {name: body["spec"].get(name) for name in ("dnsNames", "ipAddresses")}
                change = {"spec": {**names, **body["spec"]}}
                scope.objects.merge(resources.CERTIFICATES, found.metadata, change)
        require_stored(self._listed(scope.desired), wanted)

    def forget(self, key: Key) -> None:
        """The cluster is deleted."""
        self._known.pop(key, None)
        self._requested.pop(key, None)

    def _wanted(self, desired: DesiredCluster, zone: str) -> _Wanted:
        """The Certificates of a cluster, by side and file."""
        return {
            (side, file): certificate(desired, side, file, self._leaf(desired, file, zone))
            for side in SIDES
            for file in files_of(desired, side)
        }

    def _leaf(self, desired: DesiredCluster, file: str, zone: str) -> Leaf:
        return leaf_of(desired, file, self.dialect.member_host(desired, "*"), zone)

    def _listed(self, desired: DesiredCluster) -> dict[str, Certificate]:
        """Those that are there, by name. A list shows whether the resource exists at all."""
        try:
            found = self.client.list(
                resources.CERTIFICATES,
                Certificate,
                namespace=desired.namespace,
                label_selector=selector(desired),
            )
        except NotFound:
            raise NotInstalled(NOT_INSTALLED) from None
        own = [each for each in found.whole() if each.metadata.controller_uid == desired.uid]
        return {each.metadata.name: each for each in own}

    def _evaluated(
        self, desired: DesiredCluster, zone: str, wanted: _Wanted, listed: Mapping[str, Certificate]
    ) -> Found:
        asked = {place: listed.get(body["metadata"]["name"]) for place, body in wanted.items()}
        seen = {place: self._seen(desired, place, zone, body, asked[place]) for place, body in wanted.items()}
        offers = {
            side: tuple(offer for (of, _), (offer, _, _) in seen.items() if of == side and offer is not None)
            for side, _ in wanted
        }
        problems = {problem: is_pending for _, problem, is_pending in seen.values() if problem}
        return Found(
            offers={side: made for side, made in offers.items() if len(made) == len(files_of(desired, side))},
            is_unrequested=any(not _is_asked(asked[place], body) for place, body in wanted.items()),
            problem="; ".join(problems),
            is_pending=bool(problems) and all(problems.values()),
        )

    def _seen(
        self,
        desired: DesiredCluster,
        place: tuple[Side, str],
        zone: str,
        wanted: RawObject,
        asked: Certificate | None,
    ) -> tuple[Offer | None, str, bool]:
        """What there is of one file, what is wrong, and whether that may pass by itself.

        Until cert-manager has issued what is asked for now, its Secret may have anything: whoever may change
        a Certificate has it issued by a CA of his own.
        """
        unready = unissued(asked, wanted)
        if unready:
            return None, unready, self._is_pending(desired, asked)
        try:
            offer = self._offer(desired, place, zone)
        except BadCertificate as error:
            return None, str(error), self._is_pending(desired, asked)
        return offer, failure(asked), False

    def _is_pending(self, desired: DesiredCluster, asked: Certificate | None) -> bool:
        """Whether cert-manager was asked just now."""
        if asked is None:
            return True
        if asked.is_ready or asked.failure is not None:
            return False
        since = self.clock.monotonic() - self._requested.get(desired.key, -math.inf)
        age = (self.clock.now() - instant(asked.metadata.creation_timestamp)).total_seconds()
        return min(age, since) < NEW_SECONDS

    def _offer(self, desired: DesiredCluster, place: tuple[Side, str], zone: str) -> Offer:
        """Raises BadCertificate."""
        side, file = place
        name, leaf = certificate_name(desired, file), self._leaf(desired, file, zone)
        where, now = f"Secret {name} (of cert-manager)", self.clock.now()
        get = partial(self.client.get, resources.SECRETS, Key(desired.namespace, name), Secret)
        try:
            found = self.reads.read(get)
        except NotFound:
            raise BadCertificate(f"{where} is missing") from None
        require_source(found.metadata, where, name, issuer_of(desired, side))
        demand = Demand(usages=frozenset({leaf.usage}), names=self._dialed(desired, leaf))
        supplied = read(decoded(found.data), (STANDARD,), where=where, demand=demand, now=now)
        return offered(supplied, file, leaf, where, anchor(supplied.chain, supplied.ca, now=now))

    def _dialed(self, desired: DesiredCluster, leaf: Leaf) -> tuple[str, ...]:
        """The names that a certificate must have, whatever else was asked for since it was issued."""
        if leaf.usage is not Usage.SERVER:
            return ()
        service = () if leaf.common_name else (f"{desired.name}.{desired.namespace}.svc",)
        return (self.dialect.member_host(desired, "*"), *service)


def _is_asked(found: Certificate | None, wanted: RawObject) -> bool:
    return found is not None and is_as_asked(found.spec, wanted["spec"])
