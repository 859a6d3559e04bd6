"""As whom persistent members run: as what their claim was made for, whatever happens."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from etcd_operator.controllers.shared.manifests.security import AS_ROOT, RESTRICTED
from unit.fakes.apiserver import Json
from unit.fakes.apiserver.kinds import CLAIMS, PODS, REPLICA_SETS
from unit.passes.bench import Bench, bootstrapped
from unit.passes.bodies import IMPROBABLE, PEERS, persistent
from unit.passes.manual_recoveries import ask, lost_for_long

ANNOTATION = "etcd.improbable.io/non-root"


def is_root(made: Bench) -> dict[str, bool]:
    """By ReplicaSet: whether the next pod that it makes runs as root."""
    found = {}
    for body in made.api.objects.select(REPLICA_SETS):
        spec = body["spec"]["template"]["spec"]
        rights = AS_ROOT if spec["securityContext"] == AS_ROOT.pod else RESTRICTED
        assert spec["securityContext"] == rights.pod
        assert spec["containers"][0]["securityContext"] == rights.container
        found[body["metadata"]["name"]] = rights is AS_ROOT
    return found


def annotate(made: Bench, name: str, value: str | None) -> None:
    """As somebody's `kubectl annotate pvc`."""
    made.edit(CLAIMS, name, {"metadata": {"annotations": {ANNOTATION: value}}})


def annotated(made: Bench) -> list[str]:
    """The claims that are for a member that is not root."""
    claims: list[Json] = [claim["metadata"] for claim in made.api.objects.select(CLAIMS)]
    return [claim["name"] for claim in claims if claim["annotations"].get(ANNOTATION) == "true"]


def pods(made: Bench) -> list[str]:
    """The UIDs of all pods."""
    return sorted(pod["metadata"]["uid"] for pod in made.api.objects.select(PODS))


def age(made: Bench) -> None:
    """Make the claims those of a cluster whose etcds all ran as root, under an operator that starts now."""
    made.kill()
    for name in made.names(CLAIMS):
        annotate(made, name, None)
    made.start()
    made.run_until(lambda: all(is_root(made).values()))
    made.settle()


@contextmanager
def from_before(version: str = "3.6.16") -> Iterator[Bench]:
    """A cluster from before: see `age`."""
    with bootstrapped(*persistent(version=version)) as made:
        age(made)
        yield made


def test_members_of_a_new_cluster_are_not_root_and_their_claims_record_it() -> None:
    with bootstrapped(*persistent()) as made:
        assert is_root(made) == {"c-0": False, "c-1": False, "c-2": False}
        assert annotated(made) == ["c-0", "c-1", "c-2"]


def test_no_pod_of_a_cluster_from_before_is_touched() -> None:
    with bootstrapped(*persistent()) as made:
        before = pods(made)
        age(made)

        assert pods(made) == before
        made.rest()


def test_a_cluster_from_before_grows_as_it_was() -> None:
    with from_before() as made:
        made.edit(IMPROBABLE, "c", {"spec": {"replicas": 5}})
        made.settle()

        assert is_root(made) == dict.fromkeys((f"c-{number}" for number in range(5)), True)
        assert annotated(made) == []


def test_an_upgrade_makes_peers_anew_that_can_read_what_root_wrote() -> None:
    with from_before(version="3.5.34") as made:
        peers = {peer["metadata"]["uid"] for peer in made.api.objects.select(PEERS)}
        made.edit(IMPROBABLE, "c", {"spec": {"version": "3.5.35"}})
        made.settle()

        assert not peers & {peer["metadata"]["uid"] for peer in made.api.objects.select(PEERS)}
        assert is_root(made) == {"c-0": True, "c-1": True, "c-2": True}


def test_a_lost_member_of_a_cluster_from_before_is_replaced_as_it_was() -> None:
    with from_before() as made:
        made.lose_claim("c-1")
        made.settle()

        assert is_root(made) == {"c-0": True, "c-1": True, "c-2": True}


def test_a_cluster_from_before_is_recovered_as_it_was() -> None:
    """On storage that suits root alone a seed of another user would never start."""
    with from_before() as made:
        lost_for_long(made)
        ask(made)
        made.run_until(lambda: "c-3" in made.names(REPLICA_SETS))
        assert is_root(made)["c-3"]
        made.settle()

        assert is_root(made) == {"c-0": True, "c-1": True, "c-3": True}


@pytest.mark.parametrize("value", ["true", "false"])
def test_a_person_changes_it_for_one_claim_and_its_next_pod(value: str) -> None:
    with from_before() as made:
        before = pods(made)
        annotate(made, "c-1", value)
        if value == "true":
            made.run_until(lambda: not is_root(made)["c-1"])
        made.settle()

        assert is_root(made) == {"c-0": True, "c-1": value == "false", "c-2": True}
        assert pods(made) == before


def test_a_cluster_created_again_resumes_as_what_its_claims_were_made_for() -> None:
    with from_before() as made:
        made.delete(IMPROBABLE, "c")
        made.run_until(lambda: not made.names(PODS) and not made.names(REPLICA_SETS))
        made.create(*persistent())
        made.settle()

        assert is_root(made) == {"c-0": True, "c-1": True, "c-2": True}


def test_a_context_of_the_users_own_goes_to_every_member() -> None:
    own = {"runAsUser": 0}
    with bootstrapped(*persistent(podTemplate={"securityContext": own})) as made:
        contexts = [
            body["spec"]["template"]["spec"]["securityContext"]
            for body in made.api.objects.select(REPLICA_SETS)
        ]

        assert contexts == [own] * 3
        assert annotated(made) == []
