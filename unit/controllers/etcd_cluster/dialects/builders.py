"""Stored resources of both groups."""

from typing import Any

import msgspec

from etcd_operator.api import coreos, improbable
from etcd_operator.api.meta import ObjectMeta
from etcd_operator.controllers.shared.decide.clusters import Defaults

DEFAULTS = Defaults(repository="quay.io/coreos/etcd", version="3.6.16")

META = ObjectMeta(
    name="db", namespace="ns", uid="uid-1", generation=7, creation_timestamp="2026-01-01T00:00:00Z"
)

STORAGE = {"volumeClaimTemplate": {"resources": {"requests": {"storage": "1Gi"}}}}


def raw(spec: dict[str, Any]) -> msgspec.Raw:
    """A spec as JSON."""
    return msgspec.Raw(msgspec.json.encode(spec))


def coreos_cluster(spec: dict[str, Any] | None = None, **changes: Any) -> coreos.EtcdCluster:
    """A coreos.com EtcdCluster."""
    stored = raw({"size": 3} if spec is None else spec)
    return coreos.EtcdCluster(**{"metadata": META, "stored_spec": stored, **changes})


def improbable_cluster(spec: dict[str, Any] | None = None, **changes: Any) -> improbable.EtcdCluster:
    """An etcd.improbable.io EtcdCluster; `spec` overrides the minimum; None removes a field."""
    minimum = {"replicas": 3, "version": "3.6.16", "storage": STORAGE}
    merged = {name: value for name, value in {**minimum, **(spec or {})}.items() if value is not None}
    return improbable.EtcdCluster(**{"metadata": META, "stored_spec": raw(merged), **changes})
