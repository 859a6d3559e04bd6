"""Pods without their labels."""

from dataclasses import replace

from etcd_operator.controllers.etcd_cluster.decide.actions import RestoreLabels
from etcd_operator.controllers.etcd_cluster.decide.members import Unlabelled
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.shared.decide.member_names import is_member_name
from unit.controllers.etcd_cluster.decide.builders import bootstrapped, ephemeral, without


def test_pods_get_their_labels_back_before_anything_is_concluded_from_their_absence() -> None:
    lost = tuple(Unlabelled(name=f"db-000{n}", uid=f"pod-{n}", member=f"db-000{n}") for n in (0, 1))
    state = without(bootstrapped(ephemeral()), "db-0000", "db-0001")

    made = plan(replace(state, unlabelled=lost))

    assert made.actions == tuple(RestoreLabels(pod=pod) for pod in lost)


def test_names_of_members() -> None:
    assert is_member_name("db-0", "db")
    assert is_member_name("my-db-12", "my-db")
    assert not is_member_name("my-db-12", "db")
    assert not is_member_name("db-x", "db")
    assert not is_member_name("db", "db")
