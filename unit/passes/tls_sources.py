"""An EtcdCluster with TLS for clients, as EtcdBackups see it: its status, and its CAs. No member runs."""

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from etcd_operator.api.tls import Tls
from etcd_operator.controllers.etcd_cluster.manifests.authorities import (
    Authorities,
    authorities_secret,
    new_authorities,
)
from etcd_operator.controllers.etcd_cluster.reconciler import ClusterReconciler
from etcd_operator.engine.controller import Result
from unit.fakes.apiserver.kinds import SECRETS
from unit.fakes.clock import FakeClock
from unit.passes.bench import Bench, bench
from unit.passes.bodies import IMPROBABLE, persistent
from unit.passes.harness import OWN_NAMESPACE

ENDPOINT = "c-0.c-peer.default.svc:2379"


@contextmanager
def tls_source() -> Iterator[Bench]:
    """A world with `add_source`, whose operator will only take backups."""
    idle = patch.object(ClusterReconciler, "reconcile", return_value=Result())
    with bench(FakeClock(datetime.now(UTC)), only=("backups",)) as made, idle:
        made.api.add_namespace(OWN_NAMESPACE)
        yield made


def add_source(made: Bench, *, client_cert_auth: bool = True, has_cas: bool = True) -> Authorities:
    """The EtcdCluster `c`, which serves; its CAs."""
    kind, body = persistent(size=1, tls={"client": {"auto": {}}})
    uid = made.create(kind, body)["metadata"]["uid"]
    cluster: Any = SimpleNamespace(
        uid=uid,
        name="c",
        namespace="default",
        api_version=IMPROBABLE.api_version,
        tls=Tls(),
        rotate_peer_ca="",
        rotate_client_ca="",
    )
    cas = new_authorities(cluster, made.clock.now(), "cluster.local")
    if has_cas:
        made.api.objects.create(SECRETS, OWN_NAMESPACE, authorities_secret(cluster, OWN_NAMESPACE, cas))
    record = {"clientCA": "f" * 64, "clientCertAuth": client_cert_auth}
    status = {"clusterID": "c0ffee", "endpoints": [f"https://{ENDPOINT}"], "tls": record}
    made.edit(kind, "c", {"status": status}, subresource="status")
    return cas


def secrets(made: Bench) -> list[str]:
    """The names of the Secrets where the cluster is."""
    return [each["metadata"]["name"] for each in made.api.objects.select(SECRETS, "default")]


def files(made: Bench, name: str) -> dict[str, bytes]:
    """What is in a Secret."""
    return {file: base64.b64decode(text) for file, text in made.get(SECRETS, name)["data"].items()}
