"""Paths of resources, as the API server documents them."""

import pytest

from etcd_operator.kube.resources import NODES, PEERS, PODS, Resource


@pytest.mark.parametrize(
    ("resource", "arguments", "path"),
    [
        pytest.param(PODS, {}, "/api/v1/pods", id="a core collection of all namespaces"),
        pytest.param(PODS, {"namespace": "a"}, "/api/v1/namespaces/a/pods", id="of one namespace"),
        pytest.param(
            PEERS,
            {"namespace": "a", "name": "p", "subresource": "status"},
            "/apis/etcd.improbable.io/v1alpha1/namespaces/a/etcdpeers/p/status",
            id="a subresource of a grouped object",
        ),
        pytest.param(NODES, {"name": "n"}, "/api/v1/nodes/n", id="a cluster-wide object"),
        pytest.param(
            NODES, {"namespace": "a", "name": "n"}, "/api/v1/nodes/n", id="whose namespace is ignored"
        ),
        pytest.param(
            PODS, {"namespace": "a", "name": "x/../y"}, "/api/v1/namespaces/a/pods/x%2F..%2Fy", id="escaped"
        ),
    ],
)
def test_a_path_follows_the_api_conventions(resource: Resource, arguments: dict[str, str], path: str) -> None:
    assert resource.path(**arguments) == path


def test_an_object_of_a_namespaced_resource_needs_its_namespace() -> None:
    with pytest.raises(ValueError, match="needs its namespace"):
        PODS.path(name="a")
