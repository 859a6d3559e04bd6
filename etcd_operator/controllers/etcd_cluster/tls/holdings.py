"""What the Secrets with certificates have, and the bundle for clients: read now and then, not watched."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from etcd_operator.clock import Clock
from etcd_operator.controllers.etcd_cluster.decide.certificates.state import Side
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.dialects.base import Dialect
from etcd_operator.controllers.etcd_cluster.manifests import tls
from etcd_operator.controllers.etcd_cluster.manifests.authorities import Authorities
from etcd_operator.controllers.etcd_cluster.manifests.tls import Held, Named, secret_name
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.controllers.shared.secret_reads import KEPT_SECONDS, Reads
from etcd_operator.errors import Forbidden, RetryableError
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.views import ConfigMap, Secret
from etcd_operator.pki.description import Description, describe_bundle
from etcd_operator.pki.errors import BadCertificate

STARTING_SECONDS = 5.0
"""After so long the Secret of a member that does not run is read again: its pod does not start without."""


@dataclass(frozen=True, slots=True)
class _Current:
    """A Secret as it was read."""

    leafs: tuple[Named, ...]  # that it was compared with
    held: Mapping[Side, Held]
    until: float  # when it is read again; monotonic, for a clock that is wrong


@dataclass(eq=False, kw_only=True)
class Holdings:
    """Of the clusters of one API group."""

    dialect: Dialect[Any]
    clock: Clock
    reads: Reads
    # of each cluster, by holder (a member, or the name for clients), the Secret
    _current: dict[Key, dict[str, _Current]] = field(default_factory=dict)
    # of each cluster, the bundle in its ConfigMap, and until when it is believed (monotonic)
    _bundles: dict[Key, tuple[tuple[Description, ...], float]] = field(default_factory=dict)
    # of each cluster, whether there is a Secret for clients, and until when that is believed (monotonic)
    _shared: dict[Key, tuple[bool, float]] = field(default_factory=dict)

    def of(
        self, desired: DesiredCluster, made: Authorities, holder: str, objects: Objects, *, is_starting: bool
    ) -> Mapping[Side, Held]:
        """What the Secret of a member, or of clients, has. It is read now and then.

        While it cannot be read, the last known content counts. Raises the errors of `Client` without one.
        """
        leafs = self.leafs(desired, made, holder)
        known = self._current.get(desired.key, {}).get(holder)
        known = known if known is not None and known.leafs == leafs else None
        early = KEPT_SECONDS - STARTING_SECONDS if is_starting else 0.0
        if known is not None and self.clock.monotonic() < known.until - early:
            return known.held
        try:
            found = self.found(holder, objects)
        except RetryableError:
            if known is None:
                raise
            return known.held
        return self.note(desired, holder, leafs, found)

    def found(self, holder: str, objects: Objects) -> Secret | None:
        """The Secret of a holder as it is now. Raises the errors of `Client`."""
        return self.reads.read(partial(objects.find, resources.SECRETS, secret_name(holder), Secret))

    def note(
        self, desired: DesiredCluster, holder: str, leafs: tuple[Named, ...], found: Secret | None
    ) -> Mapping[Side, Held]:
        """What a Secret has that was read just now."""
        is_ours = found is not None and found.metadata.controller_uid == desired.uid
        data = found.data if found is not None and is_ours else {}
        now = self.clock.now()
        held = {side: tls.held(data, leafs, side, now) for side in sides_of(desired) if _has(leafs, side)}
        is_whole = all(each.files is not None for each in held.values())
        until = self.clock.monotonic() + (KEPT_SECONDS if is_whole else 0.0)
        self._current.setdefault(desired.key, {})[holder] = _Current(leafs, held, until)
        return held

    def published(self, desired: DesiredCluster, objects: Objects) -> tuple[Description, ...]:
        """The bundle in the ConfigMap; none if it is not there, or somebody else's, or may not be read.

        The right that is missing is reported when it is written: no repair of members waits for that.
        """
        known, now = self._bundles.get(desired.key), self.clock.monotonic()
        if known is not None and now < known[1]:
            return known[0]
        try:
            found = objects.find(resources.CONFIG_MAPS, tls.ca_config_map_name(desired.name), ConfigMap)
        except Forbidden:
            return ()
        if found is None or found.metadata.controller_uid != desired.uid:
            return ()
        try:
            bundle = describe_bundle(found.data.get("ca.crt", "").encode())
        except BadCertificate:
            return ()
        self._bundles[desired.key] = bundle, now + KEPT_SECONDS
        return bundle

    def has_unused(self, desired: DesiredCluster, objects: Objects) -> bool:
        """Whether there is a Secret for clients, although none needs a certificate. Raises as `found`."""
        if desired.secured.client_cert_auth or not desired.secured.issued[1] or tls.clients_of(desired):
            return False
        known, now = self._shared.get(desired.key), self.clock.monotonic()
        if known is not None and now < known[1]:
            return known[0]
        found = self.found(tls.holder(desired.name), objects)
        is_there = found is not None and found.metadata.controller_uid == desired.uid
        self._shared[desired.key] = is_there, now + KEPT_SECONDS
        return is_there

    def leafs(self, desired: DesiredCluster, made: Authorities, member: str) -> tuple[Named, ...]:
        """What the Secret of a member is to have, or that of clients."""
        if member == tls.clients_of(desired):
            return tls.client_leafs(desired, made)
        host = self.dialect.member_host(desired, member).removesuffix(f".{desired.namespace}.svc")
        return tls.leafs(desired, made, member, tls.member_names(desired, (host, member), made.zone))

    def outdate(self, key: Key, holder: str = "") -> None:
        """The Secret of a holder is written, or the ConfigMap: it is read again."""
        self._shared.pop(key, None)
        known = self._current.get(key, {}).get(holder)
        if known is not None:
            self._current[key][holder] = replace(known, until=self.clock.monotonic())
        if not holder:
            self._bundles.pop(key, None)

    def holders(self, key: Key) -> tuple[str, ...]:
        """The members, and the name for clients, whose Secrets are known."""
        return tuple(self._current.get(key, {}))

    def forget(self, key: Key) -> tuple[str, ...]:
        """The cluster is deleted; the holders of its Secrets."""
        self._bundles.pop(key, None)
        self._shared.pop(key, None)
        return tuple(self._current.pop(key, ()))


def sides_of(desired: DesiredCluster) -> tuple[Side, ...]:
    """Those for which the operator issues the certificates."""
    found: tuple[tuple[Side, bool], ...] = (
        ("client", desired.has_client_certificates),
        ("peer", desired.has_peer_certificates),
    )
    return tuple(side for side, is_used in found if is_used)


def _has(leafs: tuple[Named, ...], side: Side) -> bool:
    return any(each.side == side for each in leafs)
