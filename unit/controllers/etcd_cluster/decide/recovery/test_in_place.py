"""A restore in place: when it is begun, waited for, cancelled; and what it gives up."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from etcd_operator.controllers.etcd_cluster.decide.actions import (
    Action,
    CreateClientService,
    CreateMember,
    Remember,
    Stage,
)
from etcd_operator.controllers.etcd_cluster.decide.members import PodProblem
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import (
    CloseClients,
    ConfirmBackup,
    CreateClosedService,
    DropFilling,
    DropSeed,
    FillSeed,
    OpenSeed,
    ReopenClients,
    RetireMember,
    SetSeedExistingOnly,
    TrySeedExistingOnly,
)
from etcd_operator.controllers.etcd_cluster.decide.starts import Resuming
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.status import conditions
from etcd_operator.controllers.shared.decide.job_state import LONGEST_PAUSE, START_PATIENCE, Evictions, JobEnd
from unit.controllers.etcd_cluster.decide.builders import (
    CLUSTER_ID,
    NAMES,
    TOKEN,
    VERSION,
    answering,
    claim,
    down,
    peer,
    with_record,
)
from unit.controllers.etcd_cluster.decide.recovery.entries import recorded
from unit.controllers.etcd_cluster.decide.recovery.stored import (
    DONE,
    FAILED,
    IN_PLACE,
    LOST_CLAIM,
    NAME,
    RECOVERY,
    filling,
    final_claim,
    job,
    live,
    remembering,
    seeding,
    served,
    sight,
)


def verdicts(state: ClusterState) -> dict[str, tuple[str, str]]:
    return {c.type: (c.status, c.reason) for c in conditions(state, plan(state))}


def test_a_restore_begins_when_it_is_named() -> None:
    made = plan(live(NAME))

    confirm, remember, fill = made.actions
    assert confirm == ConfirmBackup(name="one", uid="uid-one", sha256="ab")
    assert isinstance(remember, Remember)
    assert remember.persisted.recovery == IN_PLACE
    assert fill == FillSeed(name="db-3")
    assert "the cluster is at revision 20" in made.message


STEPS = [
    pytest.param(remembering(live(NAME), IN_PLACE), FillSeed(name="db-3"), id="nothing is made"),
    pytest.param(filling(live(NAME)), FillSeed(name="db-3"), id="the Job is missing"),
    pytest.param(
        filling(live(NAME, backups=sight(job=DONE))),
        CreateMember(name="db-3", start=Resuming(token=f"{TOKEN}-1"), version=VERSION),
        id="the data is complete",
    ),
    pytest.param(
        remembering(live(NAME, backups=sight(job=job())), IN_PLACE),
        DropFilling(name="db-3"),
        id="its claim was deleted",
    ),
    pytest.param(
        filling(live(NAME, backups=sight(job=job())), claim=claim("db-3", is_terminating=True)),
        DropFilling(name="db-3"),
        id="its claim is being deleted",
    ),
    pytest.param(
        filling(live(NAME, backups=sight(job=DONE)), claim=claim("db-3", uid="another")),
        DropFilling(name="db-3"),
        id="its claim is another one",
    ),
    pytest.param(filling(live("", backups=sight(job=job()))), DropSeed(name="db-3"), id="it is cancelled"),
    pytest.param(
        remembering(live("", backups=sight(job=job())), IN_PLACE),
        DropSeed(name="db-3"),
        id="it is cancelled without a claim",
    ),
    pytest.param(
        seeding(live(NAME, backups=sight(is_closed=True))),
        ReopenClients(name="db-3"),
        id="the seed was lost after the Service was closed",
    ),
    pytest.param(
        filling(live(NAME), claim=final_claim()),
        CreateMember(name="db-3", start=Resuming(token=f"{TOKEN}-1"), version=VERSION),
        id="its EtcdPeer was deleted after it served",
    ),
]


@pytest.mark.parametrize(("state", "expected"), STEPS)
def test_each_step_follows_from_what_there_is(state: ClusterState, expected: object) -> None:
    assert plan(state).actions == (expected,)


EVICTED = Evictions(count=2, pod="db-seed-2", node="n1", message="low on disk")
WAITS = [
    pytest.param(job(), {}, id="the Job runs"),
    pytest.param(job(evictions=EVICTED), {}, id="its pods are evicted, and the next one runs"),
    pytest.param(
        job(is_running=False, waited=START_PATIENCE, evictions=EVICTED),
        {},
        id="Kubernetes pauses before the next pod",
    ),
    pytest.param(job(is_running=False, waits_for="no Secret"), {}, id="not yet"),
    pytest.param(job(is_terminating=True), {}, id="a former Job is being deleted"),
    pytest.param(None, {"claim": claim("db-3", is_terminating=True)}, id="a claim"),
]


@pytest.mark.parametrize(("found", "parts"), WAITS)
def test_what_is_under_way_is_waited_for(found: Any, parts: Any) -> None:
    made = plan(filling(live(NAME, backups=sight(job=found)), **parts))
    assert (made.actions, made.reason) == ((), "Restoring")


ENDS = [
    pytest.param(filling(live(NAME, backups=sight(job=FAILED))), "BackupDamaged", id="damaged"),
    pytest.param(
        filling(live(NAME, backups=sight(job=job(is_running=False, waited=START_PATIENCE, waits_for="x")))),
        "NotStarted",
        id="the pod never starts",
    ),
    pytest.param(
        filling(
            live(
                NAME,
                backups=sight(
                    job=job(is_running=False, waited=START_PATIENCE + LONGEST_PAUSE, evictions=EVICTED)
                ),
            )
        ),
        "NotStarted",
        id="no pod follows those that were evicted",
    ),
    pytest.param(
        filling(live(NAME), claim=LOST_CLAIM), "the volume of the claim db-3 is gone", id="its volume"
    ),
    pytest.param(
        filling(live(NAME, backups=sight(job=job())), claim=LOST_CLAIM),
        "the volume of the claim db-3 is gone",
        id="its volume, while the Job waits for it",
    ),
    pytest.param(
        seeding(live(NAME), peer=peer("db-3", is_terminating=True)),
        "lost before it served",
        id="its peer goes",
    ),
    pytest.param(seeding(live(NAME), claim=None), "lost before it served", id="its claim is gone"),
    pytest.param(
        seeding(live(NAME), claim=claim("db-3", token=f"{TOKEN}-1")),
        "lost before it served",
        id="an empty claim",
    ),
]


@pytest.mark.parametrize(("state", "expected"), ENDS)
def test_a_failure_is_recorded_before_anything_is_removed(state: ClusterState, expected: str) -> None:
    failed = recorded(plan(state))
    assert expected in failed.failure
    assert failed.replaces == CLUSTER_ID
    made = plan(remembering(state, failed))
    assert made.actions[-1] == DropSeed(name="db-3")
    assert recorded(plan(remembering(live(NAME), failed))) == msgspec.structs.replace(failed, replaces="")


def test_a_seed_with_a_problem_is_reported() -> None:
    made = plan(seeding(live(NAME), problem=PodProblem(reason="Unschedulable", message="no node")))
    assert (made.stage, made.reason) == (Stage.HELD, "Unschedulable")


def test_clients_are_kept_out_before_the_point_of_no_return() -> None:
    made = plan(served(live(NAME)))
    revision = 9 + 500_000_000
    assert made.actions == (
        TrySeedExistingOnly(name="db-3", revision=revision),
        CloseClients(name="db-3"),
        SetSeedExistingOnly(name="db-3", revision=revision),
    )
    assert plan(served(live(NAME), answer=None)).actions == ()


def test_the_last_revision_that_was_observed_is_recorded_before_anything_is_deleted() -> None:
    state = served(live(), claim=final_claim())
    later = answering(down(state, "db-2"), "db-0", revision=31)
    made = plan(later)
    remember, existing_only, *retired, opened, done = made.actions
    assert isinstance(remember, Remember)
    recovery = remember.persisted.recovery
    assert recovery is not None
    assert (recovery.given_up, remember.persisted.cluster_id) == (31, CLUSTER_ID)
    assert isinstance(existing_only, SetSeedExistingOnly)
    assert retired == [RetireMember(name=f"db-{n}", seed="db-3", keeps_data=True) for n in range(3)]
    assert opened == OpenSeed(name="db-3")
    assert isinstance(done, Remember)
    assert done.persisted.recovery == recovery
    assert "the last revision that was observed of the cluster that was given up is 31" in made.message
    again = plan(remembering(later, recovery))
    assert again.actions == made.actions[1:], "it is recorded already"
    silent = plan(remembering(down(state, *NAMES), recovery))
    assert silent.actions[-1] == done, "what was observed before counts where no member answers any more"


def test_a_seed_whose_data_an_alarm_names_is_left_to_a_person() -> None:
    made = plan(answering(served(live(NAME)), "db-3", corrupt=frozenset({"id-db-3"})))
    assert (made.actions, made.stage, made.reason) == ((), Stage.HELD, "DataCorrupt")
    assert made.message.endswith("run `etcdctl alarm disarm` in the pod of db-3")


@pytest.mark.parametrize(
    ("state", "made"),
    [
        pytest.param(served(live(NAME)), CreateClientService(), id="before the point of no return"),
        pytest.param(served(live(), claim=final_claim()), CreateClosedService(), id="after it"),
        pytest.param(
            served(live(), RECOVERY, claim=final_claim()), CreateClientService(), id="after a loss of quorum"
        ),
        pytest.param(live(), CreateClientService(), id="no recovery"),
        pytest.param(remembering(live(), IN_PLACE), CreateClientService(), id="no seed"),
        pytest.param(seeding(live(), claim=None), CreateClientService(), id="a seed without a claim"),
    ],
)
def test_a_lost_service_leads_no_client_to_members_that_are_given_up(
    state: ClusterState, made: Action
) -> None:
    assert plan(replace(state, has_client_service=False)).actions == (made,)


def test_the_status_reports_that_the_cluster_serves_until_it_does_not() -> None:
    found = verdicts(filling(live(NAME, backups=sight(job=job()))))
    assert (found["Available"], found["Degraded"]) == (("True", "QuorumHealthy"), ("True", "Restoring"))
    assert "DataLossPossible" not in found
    found = verdicts(served(live(NAME, backups=sight(is_closed=True)), claim=final_claim()))
    assert found["Available"] == ("False", "QuorumLost")
    assert found["DataLossPossible"] == ("True", "RestoredInPlace")
    done = with_record(remembering(live(), IN_PLACE), cluster_id="feed")
    (loss,) = [c for c in conditions(done, plan(done)) if c.type == "DataLossPossible"]
    assert loss.message.endswith("of the cluster that was given up is 20")


def test_revisions_exceed_those_of_an_earlier_restore() -> None:
    recovery = recorded(plan(answering(live(NAME), "db-0", revision=1_000_000_020)))
    assert recovery.revision + recovery.bump > 1_500_000_000


def test_a_job_that_ended_without_a_report_is_named() -> None:
    state = filling(live(NAME, backups=sight(job=job(end=JobEnd.FAILED, is_running=False, why="OOMKilled"))))
    assert "OOMKilled" in recorded(plan(state)).failure
