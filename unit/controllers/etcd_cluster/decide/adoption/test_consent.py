"""Whose consent an adoption needs."""

from dataclasses import replace

import pytest

from etcd_operator.api.meta import ObjectMeta
from etcd_operator.api.persisted import AnyCluster, Bootstrap, ClusterStatus
from etcd_operator.controllers.etcd_cluster.decide.adoption import consent
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.keys import Key
from unit.controllers.etcd_cluster.decide.adoption.adoptions import adopting, offered
from unit.controllers.etcd_cluster.decide.builders import CLUSTER_ID, persistent

HERE = persistent()
REFUSED = consent.of_another_namespace(HERE, Key("prod", "old"))
ADOPTABLE = "etcd.improbable.io/adoptable-by"


@pytest.mark.parametrize(
    ("host", "found"),
    [
        ("old.prod.svc", [Key("prod", "old")]),
        ("old-0.old.prod.svc", [Key("prod", "old")]),
        ("OLD-0.old.PROD.svc.cluster.local", [Key("prod", "old")]),
        ("old.prod.svc.", [Key("prod", "old")]),
        ("svc.prod.svc", [Key("prod", "svc")]),
        ("old-0.svc.prod.svc", [Key("prod", "svc")]),
        (f"old-0.old.{HERE.namespace}.svc", []),
        ("old.prod", []),
        ("etcd.example.com", []),
        ("..svc", []),
        ("10.0.0.1", []),
        ("fd00::1", []),
        ("", []),
    ],
)
def test_the_services_of_other_namespaces_are_found_in_host_names(host: str, found: list[Key]) -> None:
    assert list(consent.services(HERE, [host])) == found


def other(
    *,
    namespace: str = "prod",
    cluster_id: str = CLUSTER_ID,
    uid: str = "other",
    permits: str = "",
    members: tuple[str, ...] = (),
) -> AnyCluster:
    """An EtcdCluster and what it has on record; permits: who may adopt it."""
    annotations = {ADOPTABLE: permits} if permits else {}
    metadata = ObjectMeta(name="victim", namespace=namespace, uid=uid, annotations=annotations)
    bootstrap = Bootstrap(members=members, token="t") if members else None
    return AnyCluster(metadata=metadata, status=ClusterStatus(cluster_id=cluster_id, bootstrap=bootstrap))


@pytest.mark.parametrize(
    ("cluster", "is_owner"),
    [
        pytest.param(other(), True, id="on record"),
        pytest.param(other(cluster_id="f00"), False, id="another ID"),
        pytest.param(other(cluster_id=""), False, id="no ID"),
        pytest.param(other(uid=HERE.uid), False, id="itself"),
        pytest.param(other(permits=str(HERE.key)), False, id="it consents"),
        pytest.param(other(permits=HERE.name), True, id="it consents to one of its own namespace"),
        pytest.param(
            other(permits=HERE.name, namespace=HERE.namespace), False, id="it consents, in one namespace"
        ),
        pytest.param(other(permits=f"elsewhere/{HERE.name}"), True, id="it consents to another one"),
    ],
)
def test_a_cluster_id_on_record_belongs_to_that_resource(cluster: AnyCluster, *, is_owner: bool) -> None:
    assert consent.owner(HERE, {CLUSTER_ID}, (), [cluster]) is (cluster if is_owner else None)


@pytest.mark.parametrize(
    ("host", "is_owner"),
    [
        ("victim-0.victim.prod.svc", True),
        ("victim-3.victim.prod.svc", False),
        ("victim-0.victim.other.svc", False),
        ("victim-0", False),
    ],
)
def test_a_peer_url_of_an_initial_member_belongs_to_its_resource_before_an_id_is_on_record(
    host: str, *, is_owner: bool
) -> None:
    cluster = other(cluster_id="", members=("victim-0",))

    assert consent.owner(HERE, set(), [host], [cluster]) is (cluster if is_owner else None)


def test_without_consent_nothing_is_adopted_whatever_answers_there() -> None:
    made = plan(replace(offered(), unconsented=REFUSED, endpoints=()))

    assert (made.actions, made.reason, made.message) == ((), "AdoptionRefused", REFUSED)


def test_an_adoption_under_way_stops_where_another_resource_turns_out_to_have_the_cluster() -> None:
    made = plan(replace(adopting(ours=1), unconsented=REFUSED))

    assert (made.actions, made.reason, made.message) == ((), "AdoptionRefused", REFUSED)


def test_it_can_be_turned_back_all_the_same() -> None:
    assert plan(replace(adopting(ours=1, mode="Leave"), unconsented=REFUSED)).reason == "TurningBack"
