"""Which resource kubectl selects for a name: the documents use `EtcdCluster` and `etcdcluster`."""

import pytest

from unit.api.contract.case import EPHEMERAL, PERSISTENT
from unit.api.contract.conftest import Requests
from unit.waiting import eventually

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize("word", ["EtcdCluster", "etcdcluster", "etcd"])
def test_an_unqualified_name_selects_persistent_clusters(kubectl: Requests, word: str) -> None:
    name = kubectl.store(PERSISTENT)["metadata"]["name"]
    eventually(lambda: kubectl("get", word, name).code == 0, f"kubectl get {word} finds {name}")
    answer = kubectl("scale", word, name, "--replicas", "5")
    assert answer.code == 0, answer.err
    full = kubectl("get", "etcdclusters.etcd.improbable.io", name, "-o", "jsonpath={.spec.replicas}")
    assert full.out == "5"


@pytest.mark.parametrize(
    "word", ["ec", "coreosetcdcluster", "etcdcluster.coreos.com", "etcdclusters.coreos.com"]
)
def test_the_other_group_has_names_of_its_own(kubectl: Requests, word: str) -> None:
    name = kubectl.store(EPHEMERAL)["metadata"]["name"]
    eventually(lambda: kubectl("get", word, name).code == 0, f"kubectl get {word} finds {name}")
