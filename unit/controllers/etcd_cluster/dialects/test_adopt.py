"""How the specs of both groups name a cluster to adopt, and problems of that."""

from typing import Any

import pytest

from etcd_operator.controllers.etcd_cluster.decide.desired import Adopt
from etcd_operator.controllers.etcd_cluster.dialects.coreos import CoreosDialect
from etcd_operator.controllers.etcd_cluster.dialects.improbable import ImprobableDialect
from unit.controllers.etcd_cluster.dialects.builders import DEFAULTS, coreos_cluster, improbable_cluster

COREOS, IMPROBABLE = CoreosDialect(DEFAULTS), ImprobableDialect(DEFAULTS)
SELF_HOSTED = {"bootMemberClientEndpoint": "http://10.0.0.1:2379"}
ENDPOINTS = [
    ("http://10.0.0.1:2379", "10.0.0.1:2379"),
    ("http://[2001:db8::1]:2379/", "[2001:db8::1]:2379"),
    ("http://old-0.old.other.svc:12379", "old-0.old.other.svc:12379"),
    ("http://old:2379", "old.ns.svc:2379"),
]


@pytest.mark.parametrize(("url", "at"), ENDPOINTS)
def test_endpoints_of_a_cluster_to_adopt_are_read_and_short_names_are_of_the_same_namespace(
    url: str, at: str
) -> None:
    asked = {"endpoints": [url], "mode": "Join"}
    expected = Adopt(endpoints=(at,), mode="Join")

    assert COREOS.desired(coreos_cluster({"size": 3, "adopt": asked})).adopt == expected
    assert IMPROBABLE.desired(improbable_cluster({"adopt": asked})).adopt == expected


def test_the_boot_member_of_the_document_is_the_only_endpoint() -> None:
    made = COREOS.desired(coreos_cluster({"size": 3, "selfHosted": SELF_HOSTED}))

    assert made.adopt == Adopt(endpoints=("10.0.0.1:2379",), mode="Complete")
    assert COREOS.desired(coreos_cluster({"size": 3})).adopt is None


BAD_ADOPTIONS = [
    pytest.param({"adopt": {"endpoints": ["https://a:2379"]}}, "without TLS", id="TLS"),
    pytest.param({"adopt": {"endpoints": ["http://a"]}}, "with its port", id="no port"),
    pytest.param({"adopt": {"endpoints": ["http://u:p@a:1"]}}, "'http://u:p@a:1' must be", id="a user"),
    pytest.param({"adopt": {"endpoints": []}}, "name the client URL of each", id="no endpoint"),
    pytest.param({"adopt": {"endpoints": ["http://a:1"], "mode": "Go"}}, "'Go'", id="no such mode"),
    pytest.param({"selfHosted": {}}, "bootMemberClientEndpoint", id="no boot member"),
    pytest.param(
        {"selfHosted": SELF_HOSTED, "adopt": {"endpoints": ["http://a:1"]}}, "are alternatives", id="both"
    ),
]


@pytest.mark.parametrize(("spec", "words"), BAD_ADOPTIONS)
def test_a_cluster_that_cannot_be_found_is_not_adopted(spec: dict[str, Any], words: str) -> None:
    assert words in COREOS.desired(coreos_cluster({"size": 3, **spec})).problem
