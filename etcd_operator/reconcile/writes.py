"""How the passes of one controller write: each write is waited for until the caches show it."""

from dataclasses import dataclass
from typing import Any

from etcd_operator.keys import Key
from etcd_operator.kube.client import Client
from etcd_operator.reconcile.caches import Caches
from etcd_operator.reconcile.expectations import Expectations
from etcd_operator.reconcile.objects import Objects


@dataclass(frozen=True, kw_only=True)
class Writes:
    """What writes need: a client, and who has to see them."""

    client: Client
    caches: Caches[Any]
    expectations: Expectations

    def of(self, key: Key) -> Objects:
        """The objects in the namespace of a cluster (or peer), written by its pass."""
        wrote = self.expectations.noting(key, self.caches.of_resource)
        return Objects(client=self.client, namespace=key.namespace, wrote=wrote)
