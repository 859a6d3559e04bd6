"""Clients leave a member before it is stopped: its label, then its endpoint, then the rules of nodes."""

import pytest

from etcd_operator.controllers.etcd_cluster.observe.departures import PROXY_SECONDS
from unit.fakes.apiserver import Answer, Json, Kind
from unit.fakes.apiserver.faults import Fault, Request
from unit.fakes.apiserver.kinds import ENDPOINT_SLICES, PODS, SERVICES
from unit.passes.bench import Bench, bootstrapped
from unit.passes.bodies import COREOS, IMPROBABLE, ephemeral
from unit.passes.expected import assert_finished, member_names
from unit.passes.manual_recoveries import pod_of
from unit.passes.upgrades import of, set_version, versions

NAMES = ("c-0000", "c-0001", "c-0002")


def publish(made: Bench, *names: str) -> None:
    """The endpoints of the Service for clients, from now on; null without a name."""
    uids = [made.get(PODS, pod_of(made, name))["metadata"]["uid"] for name in names]
    endpoints = [{"targetRef": {"kind": "Pod", "uid": uid}} for uid in uids] or None
    if "c-slice" not in made.names(ENDPOINT_SLICES):
        metadata = {"name": "c-slice", "labels": {"kubernetes.io/service-name": "c"}}
        made.create(ENDPOINT_SLICES, {"metadata": metadata})
    made.edit(ENDPOINT_SLICES, "c-slice", {"endpoints": endpoints})


def is_admitted(made: Bench, name: str) -> bool:
    selector = made.get(SERVICES)["spec"]["selector"]
    return bool(selector.items() <= made.get(PODS, pod_of(made, name))["metadata"]["labels"].items())


CHANGES = [
    pytest.param(COREOS, {"version": "3.5.35"}, "c-0002", (0, 1, 2), id="an ephemeral one is stopped"),
    pytest.param(COREOS, {"size": 2}, "c-0000", (1, 2), id="an ephemeral one is removed"),
    pytest.param(IMPROBABLE, {"version": "3.5.35"}, "c-2", (0, 1, 2), id="a persistent one is stopped"),
    pytest.param(IMPROBABLE, {"replicas": 2}, "c-2", (0, 1), id="a persistent one is removed"),
]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("kind", "spec", "name", "numbers"), CHANGES)
def test_a_member_is_touched_when_its_endpoint_has_been_gone_for_a_while(
    kind: Kind, spec: Json, name: str, numbers: tuple[int, ...]
) -> None:
    with bootstrapped(*of(kind, "3.5.34")) as made:
        names = member_names(kind, 3)
        publish(made, *names)
        before = [(member.name, member.version) for member in made.etcd.etcd.members]

        def is_untouched() -> bool:
            return [(member.name, member.version) for member in made.etcd.etcd.members] == before

        made.edit(kind, "c", {"spec": spec})
        made.run_until(lambda: not is_admitted(made, name))
        made.wait(30.0)
        assert is_untouched()
        assert [is_admitted(made, each) for each in names].count(False) == 1
        publish(made)
        began = made.clock.monotonic()
        made.run_until(lambda: not is_untouched())
        assert PROXY_SECONDS <= made.clock.monotonic() - began < PROXY_SECONDS + 0.5
        made.settle()
        assert_finished(made, kind, len(numbers), numbers, version=spec.get("version", "3.5.34"))


def forbidding(request: Request) -> Fault | None:
    """As for an operator whose role is of an earlier version."""
    is_slice = request.plural == "endpointslices"
    return Answer(code=403, reason="Forbidden", message="not for you") if is_slice else None


def test_without_the_right_to_read_endpoints_they_count_as_gone() -> None:
    with bootstrapped(*ephemeral(size=3, version="3.5.34")) as made:
        publish(made, *NAMES)
        made.api.before = forbidding
        set_version(made, COREOS, "3.5.35")
        made.settle()
        assert versions(made) == ["3.5.35"] * 3
        assert all(is_admitted(made, name) for name in NAMES)


def test_a_change_that_is_withdrawn_gives_the_member_its_clients_back() -> None:
    with bootstrapped(*ephemeral(size=3, version="3.5.34")) as made:
        publish(made, *NAMES)
        made.edit(COREOS, "c", {"spec": {"size": 2}})
        made.run_until(lambda: not is_admitted(made, "c-0000"))
        made.edit(COREOS, "c", {"spec": {"size": 3}})
        made.settle()
        assert_finished(made, COREOS, 3, version="3.5.34")


def test_the_only_member_keeps_its_clients() -> None:
    with bootstrapped(*ephemeral(size=1, version="3.5.34")) as made:
        publish(made, "c-0000")
        set_version(made, COREOS, "3.5.35")
        made.run_until(lambda: versions(made) == ["3.5.35"])
        assert is_admitted(made, "c-0000")


def test_a_persistent_member_that_joins_gets_clients_when_it_votes() -> None:
    """Its peers find it before that, by the other Service."""
    with bootstrapped(*of(IMPROBABLE, "3.5.34", size=1)) as made:
        seen = set()

        def observe() -> bool:
            learners = [member.name for member in made.etcd.etcd.members if member.is_learner]
            for name in set(learners) & set(made.objects()["pods"]):
                labels = made.get(PODS, pod_of(made, name))["metadata"]["labels"]
                found = made.get(SERVICES, "c-peer")["spec"]["selector"].items() <= labels.items()
                seen.add((found, is_admitted(made, name)))
            return len(made.etcd.etcd.members) == 3 and not learners

        made.edit(IMPROBABLE, "c", {"spec": {"replicas": 3}})
        made.run_until(observe)
        made.settle()
        assert seen == {(True, False)}
        assert_finished(made, IMPROBABLE, 3, version="3.5.34")


def test_a_service_for_peers_that_selects_others_is_changed_back() -> None:
    with bootstrapped(*of(IMPROBABLE, "3.6.16")) as made:
        before = made.get(SERVICES, "c-peer")["spec"]["selector"]
        made.edit(SERVICES, "c-peer", {"spec": {"selector": {"etcd.improbable.io/cluster-token": "other"}}})
        made.run_until(lambda: made.get(SERVICES, "c-peer")["spec"]["selector"] == before)
        made.delete(SERVICES, "c-peer")
        made.run_until(lambda: "c-peer" in made.names(SERVICES))
        made.settle()
        assert_finished(made, IMPROBABLE, 3)
