"""A bundle for clients that cannot be published: nothing that does not depend on it waits for it."""

from dataclasses import replace
from typing import Any

import pytest

from etcd_operator.api.persisted import TlsRecord
from etcd_operator.controllers.etcd_cluster.decide.actions import (
    AddLearner,
    MoveLeader,
    Plan,
    Remember,
    ReplaceMember,
)
from etcd_operator.controllers.etcd_cluster.decide.certificates.acts import (
    KeepCertificates,
    PublishAuthority,
)
from etcd_operator.controllers.etcd_cluster.decide.certificates.state import ClientLeaf
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState, Unseen
from unit.controllers.etcd_cluster.decide.certificates import certs
from unit.controllers.etcd_cluster.decide.initial_members import BOTH
from unit.controllers.etcd_cluster.decide.serving_states import ADDING, CA, PREFER, PREFERRED, switched
from unit.controllers.etcd_cluster.decide.tls_states import at_rest, secured, with_one

REFUSED = Unseen(reason="Forbidden", message="the CAs cannot be published for clients: no right")


def unpublished(cluster: DesiredCluster, *, is_tried: bool = True, **changes: Any) -> ClusterState:
    found = at_rest(cluster, published=(), is_unpublished=is_tried, **changes)
    return secured(cluster, found, unkept=REFUSED if is_tried else None)


def desired(state: ClusterState, **changes: Any) -> Plan:
    return plan(replace(state, desired=replace(state.desired, **changes)))


@BOTH
def test_it_is_reported_and_tried_again_later(cluster: DesiredCluster) -> None:
    assert PublishAuthority() in plan(unpublished(cluster, is_tried=False)).actions
    made = plan(unpublished(cluster))
    assert (made.actions, made.reason, made.message) == ((), "Forbidden", REFUSED.message)


@BOTH
def test_members_are_added_and_upgraded_meanwhile(cluster: DesiredCluster) -> None:
    state = replace(unpublished(cluster), budget=3)
    made = desired(state, size=4)
    assert any(isinstance(action, AddLearner) for action in made.actions)
    made = desired(state, version="3.6.17")
    assert any(isinstance(action, ReplaceMember) for action in made.actions)


@BOTH
def test_the_certificate_for_clients_is_written_meanwhile(cluster: DesiredCluster) -> None:
    state = unpublished(cluster, clients=(ClientLeaf(name="db-client", leaf=None),))
    assert plan(state).actions == (KeepCertificates(name="db-client"),)


@BOTH
@pytest.mark.parametrize("is_published", [True, False])
def test_members_do_not_load_other_cas_before_clients_can(
    cluster: DesiredCluster, *, is_published: bool
) -> None:
    found = with_one(at_rest(cluster), loaded=(certs.A,))
    changes: dict[str, Any] = {} if is_published else {"published": (), "is_unpublished": True}
    state = replace(secured(cluster, replace(found, **changes)), budget=3)
    restarts = any(isinstance(action, MoveLeader | ReplaceMember) for action in plan(state).actions)
    assert restarts is is_published


@BOTH
@pytest.mark.parametrize(("unkept", "record"), [(None, PREFER), (REFUSED, None)])
def test_clients_are_not_sent_to_tls_before_they_can_verify_members(
    cluster: DesiredCluster, unkept: Unseen | None, record: TlsRecord | None
) -> None:
    state = switched(cluster, "Prefer", ADDING, *(PREFERRED,) * 3, tls=replace(CA, unkept=unkept))
    made = [each.persisted.tls for each in plan(state).actions if isinstance(each, Remember)]
    assert made == ([record] if record else [])
