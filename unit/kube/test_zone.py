"""The domain of the names of Services, from the resolver's file."""

import pytest

from etcd_operator.kube.zone import zone_in


@pytest.mark.parametrize(
    ("text", "zone"),
    [
        (
            "search etcd-operator.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.0.0.1\n",
            "cluster.local",
        ),
        ("nameserver 10.0.0.1\nsearch a.svc.example.org. svc.Example.org. example.org.\n", "example.org"),
        ("search example.org\n", ""),
        ("", ""),
    ],
)
def test_the_zone_is_what_follows_svc(text: str, zone: str) -> None:
    assert zone_in(text) == zone
