"""Clusters as other operators leave them: ours makes one, then what only ours has is removed."""

from collections.abc import Iterator
from contextlib import contextmanager

from unit.fakes.apiserver import Json, Kind
from unit.fakes.apiserver.kinds import CLAIMS, PODS, REPLICA_SETS, SERVICES
from unit.passes.bench import Bench, bench
from unit.passes.bodies import IMPROBABLE, PEERS, persistent

TOKEN = "etcd.improbable.io/cluster-token"


@contextmanager
def of_improbable() -> Iterator[Bench]:
    """A cluster of the earlier operator of etcd.improbable.io; no operator runs."""
    with bench(only=(IMPROBABLE.group,)) as made:
        made.create(*persistent())
        # By this token their peer URLs differ from ours.
        bootstrap = {"members": ["c-0", "c-1", "c-2"], "token": "c"}
        made.edit(IMPROBABLE, "c", {"status": {"bootstrap": bootstrap}}, subresource="status")
        made.start()
        made.settle()
        made.etcd.put(b"key", b"value")
        made.kill()
        made.api.objects.patch(IMPROBABLE, "default", "c", {"status": None}, "merge", subresource="status")
        for name in made.names(PEERS):
            made.edit(PEERS, name, {"spec": {"bootstrap": {"initialClusterToken": None}}})
        strip(made, REPLICA_SETS, {"annotations": None})
        strip(made, CLAIMS, {"annotations": None})
        strip(made, PODS, {"labels": {TOKEN: None}})
        made.edit(SERVICES, "c", {"spec": {"selector": {TOKEN: None}}})
        for name in made.names(PODS):
            pod = made.get(PODS, name)
            spec = {key: value for key, value in pod["spec"].items() if key != "readinessGates"}
            with made.api.objects.store.changed:
                made.api.objects.store.put(PODS, {**pod, "spec": spec})  # the API would not change it
        yield made


def strip(made: Bench, kind: Kind, metadata: Json) -> None:
    """Change the metadata of all objects of a kind."""
    for name in made.names(kind):
        made.edit(kind, name, {"metadata": metadata})


def hand_over(made: Bench) -> None:
    """As the guide does."""
    orphan(made)
    annotate(made)


def orphan(made: Bench) -> None:
    """Their EtcdPeers go, without the ReplicaSets."""
    for name in made.names(PEERS):
        made.delete(PEERS, name, propagation="Orphan")
    while made.names(PEERS):
        made.step()


def annotate(made: Bench, token: str = "c") -> None:
    """Claims and pods. Theirs was the name of the cluster."""
    strip(made, CLAIMS, {"annotations": {TOKEN: token}})
    strip(made, PODS, {"labels": {TOKEN: token}})


def pod_of_coreos() -> Json:
    """A member's pod as CoreOS' operator makes it, after its resource was deleted without its pods."""
    name = "c-7fpbkgxwc2"
    metadata = {"name": name, "labels": {"app": "etcd", "etcd_cluster": "c", "etcd_node": name}}
    return {"metadata": metadata, "spec": {"containers": [{"name": "etcd", "image": "etcd"}]}}
