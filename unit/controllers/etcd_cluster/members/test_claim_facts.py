"""The objects that only persistent members have, as facts."""

from typing import Any

import msgspec
import pytest

from etcd_operator.api.improbable import EtcdPeer
from etcd_operator.controllers.etcd_cluster.decide.members import ClaimFacts, PeerFacts, PodProblem
from etcd_operator.controllers.etcd_cluster.members.claim_facts import (
    claim_facts,
    peer_facts,
    replica_set_problem,
)
from etcd_operator.kube.views import Claim, ReplicaSet
from unit.controllers.manifests.cases import BOOTSTRAPPING, JOINING, PLAIN_PERSISTENT, RESUMING, peer_of

OLD = "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("conditions", "problem"),
    [
        ([], None),
        ([{"type": "ReplicaFailure", "status": "False"}], None),
        ([{"type": "Other", "status": "True"}], None),
        (
            [{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "quota"}],
            PodProblem(reason="FailedCreate", message="quota"),
        ),
        ([{"type": "ReplicaFailure", "status": "True"}], PodProblem(reason="ReplicaFailure", message="")),
    ],
    ids=["none", "passed", "another", "quota", "no message"],
)
def test_what_keeps_a_replica_set_from_making_its_pod(
    conditions: list[dict[str, str]], problem: PodProblem | None
) -> None:
    found = msgspec.convert({"metadata": {"name": "db-0"}, "status": {"conditions": conditions}}, ReplicaSet)

    assert replica_set_problem(found) == problem


def _claim(annotations: dict[str, str], **body: Any) -> Claim:
    metadata = {"name": "db-0", "uid": "u", "annotations": annotations, **body.pop("metadata", {})}
    return msgspec.convert({"metadata": metadata, **body}, Claim)


def test_a_bare_claim_reports_nothing_of_a_bootstrap() -> None:
    assert claim_facts(_claim({})) == ClaimFacts(name="db-0", uid="u")


def test_an_annotated_claim_reports_all_of_its_bootstrap() -> None:
    prefix = "etcd.improbable.io/"
    annotated = {
        f"{prefix}cluster-token": "t",
        f"{prefix}cluster-uid": "uid-1",
        f"{prefix}initial-members": "db-0,db-1",
        f"{prefix}started": "true",
        f"{prefix}cluster-id": "feed",
        f"{prefix}member-id": "1",
        f"{prefix}voters": "db-0=1,db-1=2",
        f"{prefix}voters-revision": "7",
    }
    found = _claim(annotated, status={"phase": "Bound"}, metadata={"deletionTimestamp": OLD})

    assert claim_facts(found) == ClaimFacts(
        name="db-0",
        uid="u",
        is_bound=True,
        is_terminating=True,
        is_started=True,
        cluster_uid="uid-1",
        token="t",
        initial_members=("db-0", "db-1"),
        cluster_id="feed",
        member_id="1",
        voters=("db-0=1", "db-1=2"),
        voters_revision=7,
    )


@pytest.mark.parametrize(("text", "is_started"), [("true", True), ("false", False), ("", None), ("x", None)])
def test_whether_an_initial_member_was_started(text: str, is_started: bool | None) -> None:
    assert claim_facts(_claim({"etcd.improbable.io/started": text})).is_started is is_started


@pytest.mark.parametrize("text", ["", "many", "-1", "1.5"])
def test_a_revision_that_is_no_number_is_none(text: str) -> None:
    assert claim_facts(_claim({"etcd.improbable.io/voters-revision": text})).voters_revision == 0


@pytest.mark.parametrize(
    ("phase", "is_bound", "is_lost"),
    [("Bound", True, False), ("Pending", False, False), ("Lost", False, True)],
)
def test_the_phase_of_a_claim(phase: str, is_bound: bool, is_lost: bool) -> None:
    facts = claim_facts(_claim({}, status={"phase": phase}))

    assert (facts.is_bound, facts.is_lost) == (is_bound, is_lost)


@pytest.mark.parametrize(
    ("peer", "is_existing_only"),
    [
        pytest.param(peer_of(PLAIN_PERSISTENT, start=BOOTSTRAPPING), False, id="an initial member"),
        pytest.param(peer_of(PLAIN_PERSISTENT, start=RESUMING), True, id="existing and alone"),
        pytest.param(peer_of(PLAIN_PERSISTENT, "db-3", JOINING), False, id="existing with a whole list"),
    ],
)
def test_a_peer_has_an_existing_only_start_when_it_knows_only_itself_and_bootstraps_nothing(
    peer: EtcdPeer, is_existing_only: bool
) -> None:
    assert peer_facts(peer).is_existing_only is is_existing_only


def test_the_only_initial_member_of_a_small_cluster_has_no_existing_only_start() -> None:
    existing_only = peer_of(PLAIN_PERSISTENT, start=RESUMING)
    bootstrap = msgspec.structs.replace(existing_only.spec.bootstrap, initial_cluster_state="New")
    initial_member = msgspec.structs.replace(
        existing_only, spec=msgspec.structs.replace(existing_only.spec, bootstrap=bootstrap)
    )

    assert peer_facts(initial_member) == PeerFacts(name="db-1", uid="uid-peer", version="3.6.16")
