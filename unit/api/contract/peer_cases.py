"""EtcdPeers that are refused."""

from unit.api.contract.case import (
    BOOTSTRAP,
    NO_VERSION,
    PEER,
    REQUESTS,
    Case,
    empty_volumes,
    immutable,
    reserved_names,
)

OPERATOR_CREATES_PEERS = "the operator creates EtcdPeers: create an EtcdCluster instead"
NO_HOST = "each with its own host, like my-cluster-0.my-cluster-peer.my-namespace.svc"
ONLY_OPERATOR = (
    f"denied request: {OPERATOR_CREATES_PEERS} "
    "(writing them requires the permission to update etcdpeers/operate)"
)
PEER_CASES = (
    Case(
        typed="an EtcdPeer, as an ordinary user",
        base=PEER,
        changes={},
        user="somebody",
        sees=ONLY_OPERATOR,
    ),
    *(
        Case(
            typed=f"another {field} for an existing EtcdPeer, as an ordinary user",
            base=PEER,
            changes={path: value},
            edits=True,
            user="somebody",
            sees=ONLY_OPERATOR,
        )
        for field, path, value in (
            ("version", "spec/version", "3.6.17"),
            ("label", "metadata/labels", {"etcd.improbable.io/cluster-name": "other"}),
            ("finalizer", "metadata/finalizers", ["etcdpeer.etcd.improbable.io/pvc-cleanup"]),
        )
    ),
    Case(
        typed="a name of 64 characters",
        base=PEER,
        changes={"metadata/name": "n" * 64},
        sees=f"metadata.name: Invalid value: must have at most 63 characters; {OPERATOR_CREATES_PEERS}",
    ),
    Case(
        typed="name: other-0, with clusterName: no-cluster",
        base=PEER,
        changes={"metadata/name": "other-0"},
        sees="metadata.name: Invalid value: must be the name of its cluster and a number, like my-cluster-0; "
        f"{OPERATOR_CREATES_PEERS}",
    ),
    Case(
        typed="clusterName: No.Cluster",
        base=PEER,
        changes={"spec/clusterName": "No.Cluster"},
        sees='spec.clusterName: Invalid value: "No.Cluster": must be the name of an EtcdCluster; '
        f"{OPERATOR_CREATES_PEERS}",
    ),
    Case(
        typed="initialClusterToken: My/Token",
        base=PEER,
        changes={f"{BOOTSTRAP}/initialClusterToken": "My/Token"},
        sees='spec.bootstrap.initialClusterToken: Invalid value: "My/Token": must be the token of '
        f"its cluster, with only lower-case letters, digits and '-'; {OPERATOR_CREATES_PEERS}",
    ),
    *(
        Case(
            typed=f"initialCluster: {name} at {host}",
            base=PEER,
            changes={f"{BOOTSTRAP}/static/initialCluster": [{"name": name, "host": host}]},
            sees="spec.bootstrap.static.initialCluster: Invalid value: must list only members of this "
            f"cluster, {NO_HOST}; {OPERATOR_CREATES_PEERS}",
        )
        for name, host in (
            ("no-cluster-0", "10.0.0.1"),
            ("no-cluster-0", "no-cluster-1.no-cluster.default.svc"),
            ("other-0", "other-0.no-cluster.default.svc"),
        )
    ),
    *(
        Case(
            typed=f"external: {member}",
            base=PEER,
            changes={f"{BOOTSTRAP}/external": [member]},
            sees=f'spec.bootstrap.external[0].{field}: Invalid value: "{member[field]}": must be {what}; '
            f"{OPERATOR_CREATES_PEERS}",
        )
        for member, field, what in (
            ({"id": "old", "url": "http://old:2380"}, "id", "a member ID in hexadecimal"),
            ({"id": "c0de", "url": "http://old:2380,b=http://c:2380"}, "url", "one peer URL"),
        )
    ),
    *(
        Case(
            typed=f"survivor: {host}",
            base=PEER,
            changes={f"{BOOTSTRAP}/survivor": host},
            sees="spec.bootstrap.survivor: Invalid value: must be the host of a member of this cluster, like "
            f"my-cluster-0.my-cluster-peer.my-namespace.svc; {OPERATOR_CREATES_PEERS}",
        )
        for host in ("10.0.0.1", "other-0.other.default.svc", "no-cluster-0.no-cluster.default.svc:2379,x")
    ),
    *empty_volumes(PEER),
    *reserved_names(PEER),
    Case(
        typed='version: "latest"',
        base=PEER,
        changes={"spec/version": "latest"},
        sees=f'spec.version: Invalid value: "latest": "latest" {NO_VERSION}',
    ),
    Case(
        typed="initialClusterState: New, for a member that has started",
        base=PEER,
        changes={"spec/bootstrap/initialClusterState": "New"},
        edits=True,
        sees="spec.bootstrap.initialClusterState: Invalid value: a member that has started cannot "
        "bootstrap a cluster again: keep the value Existing",
    ),
    *(
        Case(
            typed=f"another {path.split('/')[1]} for an existing EtcdPeer",
            base=PEER,
            changes={path: value},
            edits=True,
            sees=immutable(f"spec.{path.split('/')[1]}"),
        )
        for path, value in (
            ("spec/clusterName", "other"),
            (f"{REQUESTS}/storage", "60Mi"),
            ("spec/podTemplate", {}),
        )
    ),
)
