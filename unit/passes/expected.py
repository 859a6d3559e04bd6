"""A finished cluster of either group, as objects and as status."""

from typing import Any

from unit.fakes.apiserver import Json, Kind
from unit.fakes.apiserver.kinds import BUDGETS, CLAIMS, PODS, REPLICA_SETS, SERVICES
from unit.passes.bench import Bench
from unit.passes.bodies import COREOS, PEERS


def member_names(kind: Kind, size: int, name: str = "c") -> list[str]:
    """The names of the members of a cluster that was never changed."""
    return [f"{name}-{number:0{4 if kind is COREOS else 1}d}" for number in range(size)]


def expected_objects(kind: Kind, names: list[str]) -> dict[str, list[str]]:
    """Exactly the objects that a cluster of these members consists of."""
    if kind is COREOS:
        return {"services": ["c", *names], "pods": names, "peers": [], "sets": [], "claims": []}
    return {"services": ["c", "c-peer"], "pods": names, "peers": names, "sets": names, "claims": names}


def assert_finished(
    bench: Bench,
    kind: Kind,
    size: int,
    numbers: tuple[int, ...] = (),
    version: str = "3.6.16",
    kept: tuple[str, ...] = (),
    former: bool = False,
) -> None:
    """The only cluster is as desired: objects, etcd, status and annotations; then it rests.

    `numbers` are those of the members of a cluster that has changed since it was founded; `kept` are claims
    that a recovery gave up. former: it has the Service of an earlier operator, for clients and peers.
    """
    names = [member_names(kind, number + 1)[-1] for number in numbers] or member_names(kind, size)
    expected = expected_objects(kind, names)
    expected["claims"] = sorted([*expected["claims"], *kept])
    if former:
        expected["services"] = ["c"]
    assert bench.objects() == expected
    process = bench.etcd
    assert sorted(process.running) == names
    assert [m.is_learner for m in process.etcd.members] == [False] * size
    _assert_protected(bench, kind, size)
    status, cluster_id = bench.status(kind), f"{process.etcd.cluster_id:x}"
    assert status["clusterID"] == cluster_id
    if kind is COREOS:
        _assert_ephemeral(status, names, max(numbers, default=size - 1), version)
    else:
        assert tuple(status.get("keptClaims", ())) == kept
        _assert_persistent(bench, status, names, cluster_id, version)
    bench.rest()


def _assert_protected(bench: Bench, kind: Kind, size: int) -> None:
    """Evictions leave a quorum of members that serve; every pod serves and refuses an empty volume."""
    budget = bench.get(BUDGETS)
    assert budget["spec"]["minAvailable"] == size // 2 + 1
    assert len(budget["metadata"]["ownerReferences"]) == 1
    group = kind.group
    for pod in bench.api.objects.select(PODS):
        meta, reported = pod["metadata"], {c["type"]: c["status"] for c in pod["status"]["conditions"]}
        assert reported[f"{group}/member-serves"] == "True"
        assert bench.get(SERVICES)["spec"]["selector"].items() <= meta["labels"].items()
        name = meta["labels"].get("etcd.improbable.io/peer-name", meta["name"])
        environment = environment_of(pod)
        assert environment["ETCD_INITIAL_CLUSTER_STATE"] == "existing"
        assert environment["ETCD_INITIAL_CLUSTER"].startswith(f"{name}=")
        assert environment["ETCD_INITIAL_CLUSTER"].count("=") == 1


def _assert_ephemeral(status: Json, names: list[str], last: int, version: str) -> None:
    assert (status["phase"], status["size"]) == ("Running", len(names))
    assert status["nextOrdinal"] > last
    assert status["members"] == {"ready": names, "unready": []}
    assert status["endpoints"] == [f"http://{name}.default.svc:2379" for name in names]
    assert (status["currentVersion"], status.get("targetVersion", "")) == (version, "")


def _assert_persistent(bench: Bench, status: Json, names: list[str], cluster_id: str, version: str) -> None:
    cluster_version = f"{version.rpartition('.')[0]}.0"
    assert (status["currentVersion"], status["clusterVersion"]) == (version, cluster_version)
    assert [(m["name"], m["healthy"]) for m in status["members"]] == [(name, True) for name in names]
    assert (status["replicas"], status["readyReplicas"]) == (len(names), len(names))
    ids = {m.name: f"{m.id:x}" for m in bench.etcd.etcd.members}
    for name in names:
        peer = bench.get(PEERS, name)
        assert peer["spec"]["bootstrap"]["initialClusterState"] == "Existing"
        assert [m["name"] for m in peer["spec"]["bootstrap"]["static"]["initialCluster"]] == [name]
        assert (peer["status"]["memberID"], peer["status"]["serverVersion"]) == (ids[name], version)
        assert template_of(bench.get(REPLICA_SETS, name))["ETCD_INITIAL_CLUSTER_STATE"] == "existing"
        annotations = bench.get(CLAIMS, name)["metadata"]["annotations"]
        assert annotations["etcd.improbable.io/cluster-id"] == cluster_id
        assert annotations["etcd.improbable.io/member-id"] == ids[name]
        assert annotations["etcd.improbable.io/voters"] == ",".join(f"{n}={ids[n]}" for n in names)


def template_of(replica_set: Json) -> dict[str, Any]:
    """The environment that a ReplicaSet's next pod is given."""
    return environment_of(replica_set["spec"]["template"])


def environment_of(pod: Json) -> dict[str, Any]:
    """The environment that a pod's etcd is given when its container is started now."""
    annotations = {f"metadata.annotations['{k}']": v for k, v in pod["metadata"]["annotations"].items()}
    env = pod["spec"]["containers"][0]["env"]
    return {
        e["name"]: e["value"] if "value" in e else annotations[e["valueFrom"]["fieldRef"]["fieldPath"]]
        for e in env
    }
