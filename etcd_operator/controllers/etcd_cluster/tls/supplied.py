"""The Secrets of users with certificates for members: read now and then, and checked; members mount them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from etcd_operator.api.cluster_spec import UserSecret
from etcd_operator.clock import Clock
from etcd_operator.controllers.etcd_cluster.decide.certificates.state import Side, SuppliedFacts
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.dialects.base import Dialect
from etcd_operator.controllers.etcd_cluster.manifests.authorities import decoded
from etcd_operator.controllers.etcd_cluster.tls.authorities import KEPT_SECONDS
from etcd_operator.controllers.etcd_cluster.tls.reads import Reads
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.views import Secret
from etcd_operator.pki.errors import BadCertificate
from etcd_operator.pki.profiles import Usage
from etcd_operator.pki.secrets import STANDARD, Demand, Prefix, Supplied, read


@dataclass(frozen=True, slots=True)
class _Known:
    secrets: Mapping[Side, UserSecret]  # that were read
    found: Mapping[Side, Supplied] = field(repr=False)
    until: float  # when they are read again; monotonic, for a clock that is wrong


@dataclass(eq=False, kw_only=True)
class SuppliedSecrets:
    """Of the clusters of one API group."""

    dialect: Dialect[Any]
    clock: Clock
    reads: Reads
    _known: dict[Key, _Known] = field(default_factory=dict, repr=False)

    def of(self, desired: DesiredCluster, objects: Objects) -> Mapping[Side, Supplied]:
        """What they have, by side. Raises BadCertificate, also if one is missing, and those of `Client`."""
        secrets = secrets_of(desired)
        if not secrets:
            return {}
        known, now = self._known.get(desired.key), self.clock.monotonic()
        if known is not None and known.secrets == secrets and now < known.until:
            return known.found
        self._known.pop(desired.key, None)
        found = {side: self._read(desired, side, secret, objects) for side, secret in secrets.items()}
        self._known[desired.key] = _Known(secrets, found, now + KEPT_SECONDS)
        return found

    def _read(self, desired: DesiredCluster, side: Side, secret: UserSecret, objects: Objects) -> Supplied:
        where = f"Secret {secret.name} (spec.tls.{side})"
        found = self.reads.read(partial(objects.find, resources.SECRETS, secret.name, Secret))
        if found is None:
            raise BadCertificate(f"{where} is missing: create it, or correct the name")
        try:
            data = decoded(found.data)
        except BadCertificate as error:
            raise BadCertificate(f"{where} cannot be used: {error}") from None
        # Members that exist have the files under the keys on record.
        is_mounted = desired.persisted.has_begun
        prefixes: tuple[Prefix, ...] = (secret.keys,) if is_mounted else (STANDARD, _LEGACY[side])
        demand = Demand(usages=frozenset(Usage), names=(self.dialect.member_host(desired, "*"),))
        return read(data, prefixes, where=where, demand=demand, now=self.clock.now())

    def forget(self, key: Key) -> None:
        """The cluster is deleted."""
        self._known.pop(key, None)


_LEGACY: Mapping[Side, Prefix] = {"peer": "peer", "client": "server"}
"""How the keys of the Secrets begin that CoreOS' operator had."""


def secrets_of(desired: DesiredCluster) -> dict[Side, UserSecret]:
    """The Secrets of the user, by side."""
    secured = desired.secured
    return {"peer": secured.peer_secret} if secured.peer_secret is not None else {}


def facts_of(found: Mapping[Side, Supplied]) -> tuple[tuple[Side, SuppliedFacts], ...]:
    """What decisions know of them."""
    return tuple((side, SuppliedFacts(keys=each.prefix, leaf=each.leaf)) for side, each in found.items())
