"""Which pods with our labels another operator created."""

import pytest

from etcd_operator.api.meta import ObjectMeta, OwnerReference
from etcd_operator.controllers.etcd_cluster.dialects.coreos import CoreosDialect
from etcd_operator.controllers.etcd_cluster.dialects.improbable import ImprobableDialect
from etcd_operator.controllers.shared.decide.clusters import Defaults

DEFAULTS = Defaults(repository="quay.io/coreos/etcd", version="3.6.16")
EPHEMERAL = {"app": "etcd", "etcd_cluster": "c", "etcd_node": "c-0000"}
PERSISTENT = {"etcd.improbable.io/cluster-name": "c", "etcd.improbable.io/peer-name": "c-0"}


@pytest.mark.parametrize(
    ("owner", "is_theirs"),
    [
        pytest.param("coreos.com/v1", False, id="ours"),
        pytest.param("etcd.database.coreos.com/v1beta2", True, id="CoreOS' operator's"),
        pytest.param("", True, id="without an owner"),
    ],
)
def test_an_ephemeral_members_pod_is_ours_by_its_owner(owner: str, is_theirs: bool) -> None:
    owners = (OwnerReference(api_version=owner, kind="EtcdCluster", name="c", uid="1"),) if owner else ()
    pod = ObjectMeta(labels=EPHEMERAL, owner_references=owners)
    assert CoreosDialect(DEFAULTS).is_predecessors(pod) is is_theirs


def test_a_pod_with_the_label_of_a_cluster_that_runs_no_member_is_nobodys() -> None:
    assert not CoreosDialect(DEFAULTS).is_predecessors(ObjectMeta(labels={"etcd_cluster": "c"}))
    labels = {"etcd.improbable.io/cluster-name": "c"}
    assert not ImprobableDialect(DEFAULTS).is_predecessors(ObjectMeta(labels=labels))


@pytest.mark.parametrize(
    ("token", "is_theirs"), [({"etcd.improbable.io/cluster-token": "t"}, False), ({}, True)]
)
def test_a_persistent_members_pod_is_ours_by_its_token(token: dict[str, str], is_theirs: bool) -> None:
    pod = ObjectMeta(labels={**PERSISTENT, **token})
    assert ImprobableDialect(DEFAULTS).is_predecessors(pod) is is_theirs
