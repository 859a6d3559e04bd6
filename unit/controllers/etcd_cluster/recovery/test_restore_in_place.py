"""A cluster that serves is restored from an EtcdBackup: on request only, once, and not before the end."""

import pytest

from unit.fakes.apiserver import Answer, Fault, Json, Refusal, Request
from unit.fakes.apiserver.kinds import CLAIMS, JOBS, PODS, REPLICA_SETS, SERVICES, Kind
from unit.passes.bench import Bench
from unit.passes.bodies import IMPROBABLE, PEERS, persistent
from unit.passes.disturbance import DISTURBANCES, Disturbance, run_or_die
from unit.passes.expected import assert_finished
from unit.passes.jobs import ELSEWHERE
from unit.passes.manual_recoveries import LOST, RECOVER, is_reason, message
from unit.passes.restored_clusters import DAMAGED, RESTORE, Stored, stored

NAME = "c0de/one/1"
CLOSED = "etcd.improbable.io/closed"
OLD = ("c-0", "c-1", "c-2")


def has_served(made: Bench) -> bool:
    """Whether the seed was found to serve: the point of no return."""
    annotations = made.get(CLAIMS, "c-3")["metadata"]["annotations"] if "c-3" in made.names(CLAIMS) else {}
    return "etcd.improbable.io/cluster-id" in annotations


def remove_seed(made: Bench) -> None:
    """As `kubectl delete etcdpeer/c-3 pvc/c-3`, until both are gone."""
    made.delete(PEERS, "c-3")
    made.lose_claim("c-3")
    made.world.settle()
    assert "c-3" not in [*made.names(PEERS), *made.names(CLAIMS)]


def die_at_the_service(made: Bench, backups: Stored, write: int = 1) -> None:
    """A restore is requested, and the operator dies at a write of the Service: closed first, then opened."""
    made.kill()
    backups.ask(NAME)
    made.start(dies_at=write, dies_on="services")
    assert not run_or_die(made, lambda: backups.until(lambda: False))


def test_a_backup_takes_the_place_of_the_data_of_a_cluster_that_serves() -> None:
    with stored() as (made, backups):
        revision = made.etcd.etcd.revision
        backups.ask("one")
        made.run_until(is_reason(made, "RestoreRefused"))
        assert f"{RESTORE}={NAME}" in message(made)
        assert made.condition(IMPROBABLE, "Available")["status"] == "True"
        backups.ask(NAME)
        backups.until_restored()
        assert b"later" not in made.etcd.etcd.keys
        assert made.etcd.etcd.keys[b"key"] == (b"value", 2)
        assert_finished(made, IMPROBABLE, 3, (3, 4, 5), kept=OLD)
        recovery = made.status(IMPROBABLE)["recovery"]
        assert (recovery["authority"], recovery["givenUp"], recovery["revision"]) == ("InPlace", revision, 2)
        loss = made.condition(IMPROBABLE, "DataLossPossible")
        assert (loss["status"], loss["reason"]) == ("True", "RestoredInPlace")
        assert [event for event in made.event_reasons() if "Quorum" in event] == []
        assert loss["message"].endswith(f"of the cluster that was given up is {revision}")
        assert backups.selected == recovery["token"]
        assert "etcd.improbable.io/closed" not in made.get(SERVICES)["metadata"].get("annotations", {})
        for name in OLD:
            assert made.get(CLAIMS, name)["metadata"]["annotations"]["etcd.improbable.io/given-up-by"] == NAME
        removed = [each["message"] for each in made.events() if each["reason"] in ("PVCKept", "PeerRemoved")]
        assert len(removed) == 2 * len(OLD)
        assert all(" of the cluster before the restore" in note for note in removed), "none was lost"


def test_a_cluster_with_tls_is_restored_to_members_with_tls() -> None:
    tls: Json = {"peer": {"auto": {}}, "client": {"auto": {}}}
    with stored(size=1, tls=tls) as (made, backups):
        record = made.status(IMPROBABLE)["tls"]
        made.run_until(lambda: made.status(IMPROBABLE)["clusterID"] == "c0de")
        backups.ask(NAME)
        backups.until_restored()
        assert made.etcd.etcd.keys[b"key"] == (b"value", 2)
        assert made.status(IMPROBABLE)["tls"] == record
        (member,) = made.etcd.etcd.members
        assert [url.partition(":")[0] for url in member.peer_urls] == ["https"]
        assert made.get(CLAIMS, "c-1")["metadata"]["annotations"]["etcd.improbable.io/peer-tls"] == "true"
        made.rest()


def test_a_damaged_backup_leaves_the_cluster_as_it_is() -> None:
    with stored() as (made, backups):
        before = made.names(CLAIMS), made.names(PEERS)
        backups.failure = DAMAGED
        backups.ask(NAME)
        backups.until(is_reason(made, "RestoreFailed"))
        assert "one.db is damaged" in message(made)
        assert f"{RESTORE}=c0de/one/2" in message(made)
        made.wait(3.0)
        assert (made.names(CLAIMS), made.names(PEERS)) == before
        assert made.names(JOBS) == []
        backups.ask(None)
        made.settle()
        assert_finished(made, IMPROBABLE, 3)
        assert made.etcd.etcd.keys[b"later"] == (b"value", 3)
        backups.failure = None
        backups.ask("c0de/one/2")
        backups.until_restored()
        assert b"later" not in made.etcd.etcd.keys


def test_a_restore_that_is_cancelled_leaves_nothing() -> None:
    with stored() as (made, backups):
        backups.ask(NAME)
        made.run_until(lambda: bool(made.names(JOBS)))
        backups.ask(None)
        backups.until(lambda: not made.names(JOBS) and made.names(CLAIMS) == list(OLD))
        made.settle()
        assert_finished(made, IMPROBABLE, 3)
        assert made.status(IMPROBABLE)["recovery"]["replaces"] == ""
        assert "RestoreCancelled" in made.event_reasons()
        assert made.condition(IMPROBABLE, "DataLossPossible") == {}
        backups.ask(NAME)
        made.run_until(is_reason(made, "RestoreRefused"))
        assert f"{RESTORE}=c0de/one/2" in message(made)


def test_members_are_repaired_while_the_node_of_a_cancelled_restore_is_cut_off() -> None:
    """The pod of its Job does not end until a person deletes it by force."""
    with stored() as (made, backups):
        backups.ask(NAME)
        made.run_until(lambda: bool(made.names(JOBS)))
        pod = backups.jobs.start(backups.jobs.one())
        made.delete(PODS, pod)
        backups.ask(None)
        made.run_until(lambda: made.status(IMPROBABLE)["recovery"]["replaces"] == "")
        made.lose_claim("c-0")
        made.run_until(lambda: "c-0" in made.names(CLAIMS) and sorted(made.etcd.running) == list(OLD))
        made.run_until(is_reason(made, "RecoveryEnding"))
        assert f"the pod {pod} of the Job" in message(made)
        assert f"its node {ELSEWHERE} never responds again: kubectl delete pod {pod} --force" in message(made)
        writes = len(made.writes())
        made.wait(30.0)
        assert len(made.writes()) == writes
        assert made.get(CLAIMS, "c-3")["metadata"]["deletionTimestamp"]
        made.delete(PODS, pod, grace=0)
        made.settle()
        assert_finished(made, IMPROBABLE, 3)
        assert made.names(JOBS) == []


def test_a_cluster_that_is_created_again_during_a_restore_names_the_claim_of_that() -> None:
    with stored() as (made, backups):
        backups.ask(NAME)
        made.run_until(lambda: bool(made.names(JOBS)))
        made.delete(IMPROBABLE, "c")
        made.run_until(lambda: not made.names(PEERS) and not made.names(PODS))
        made.create(*persistent(size=3))
        made.run_until(is_reason(made, "ClaimsConflict"))
        assert "c-0, c-1, c-2 of the etcd cluster c0de; c-3 of a cluster that never served" in message(made)
        assert message(made).endswith("to continue with the other claims, delete the claim c-3")
        made.delete(CLAIMS, "c-3")
        made.settle()
        assert_finished(made, IMPROBABLE, 3)
        assert made.etcd.etcd.keys[b"later"] == (b"value", 3)


def test_an_edit_at_the_last_moment_reopens_the_cluster() -> None:
    """The annotation goes right after the Service was closed, and the operator dies there."""
    with stored() as (made, backups):
        die_at_the_service(made, backups)
        assert backups.selected == "closed"
        backups.ask(None)
        made.start()
        backups.until(lambda: made.names(CLAIMS) == list(OLD) and backups.selected != "closed")
        made.settle()
        assert_finished(made, IMPROBABLE, 3)
        assert made.etcd.etcd.keys[b"later"] == (b"value", 3)
        assert "etcd.improbable.io/closed" not in made.get(SERVICES)["metadata"].get("annotations", {})


def test_a_request_to_reopen_the_service_has_no_effect_once_it_was_changed() -> None:
    """Its reply is given up, and it is applied only when the Service selects other members already."""
    late: list[Json] = []

    def timing_out(request: Request) -> Fault | None:
        if late or request.plural != "services" or request.method != "PATCH":
            return None
        late.append(request.body)
        return Answer(code=504, reason="Timeout", message="the webhook did not answer in time")

    with stored() as (made, backups):
        die_at_the_service(made, backups)
        backups.ask(None)
        made.api.before = timing_out
        made.start()
        backups.until(lambda: bool(late) and backups.selected != "closed")
        with pytest.raises(Refusal, match="Operation cannot be fulfilled"):
            made.edit(SERVICES, "c", late[0])


def test_a_seed_that_is_lost_at_the_last_moment_leaves_a_cluster_that_serves() -> None:
    """Its claim goes right after the point of no return."""
    with stored() as (made, backups):
        backups.ask(NAME)
        backups.until(lambda: has_served(made))
        assert backups.selected == "closed"
        made.lose_claim("c-3")
        backups.until(is_reason(made, "RestoreFailed"))
        assert "nothing was changed" in message(made)
        assert f"{RESTORE}=c0de/one/2" in message(made)
        assert backups.selected == made.status(IMPROBABLE)["bootstrap"]["token"]
        backups.ask(None)
        made.settle()
        assert_finished(made, IMPROBABLE, 3)
        assert made.etcd.etcd.keys[b"later"] == (b"value", 3)


def test_a_seed_of_which_nothing_is_left_ends_the_restore_once_a_member_was_given_up() -> None:
    with stored() as (made, backups):
        first = backups.selected
        made.kill()
        backups.ask(NAME)
        made.start(dies_at=1, dies_on="persistentvolumeclaims/c-0")
        assert not run_or_die(made, backups.until_restored)
        assert backups.selected == "closed"
        remove_seed(made)
        made.start()
        backups.until(is_reason(made, "RestoreFailed"))
        assert "c-3 was lost after members of the old cluster had been given up" in message(made)
        assert "their claims are kept: c-0" in message(made)
        assert backups.selected == first
        assert made.condition(IMPROBABLE, "Available")["status"] == "True"
        assert made.etcd.etcd.keys[b"later"] == (b"value", 3)


def test_a_service_that_is_deleted_after_the_point_of_no_return_leads_no_client_to_the_old_members() -> None:
    with stored() as (made, backups):
        first = backups.selected
        backups.ask(NAME)
        backups.until(lambda: has_served(made))
        made.delete(SERVICES, "c")
        seen: list[str] = []

        def observe() -> bool:
            seen.extend([backups.selected] if "c" in made.names(SERVICES) else [])
            return bool(made.status(IMPROBABLE)["clusterID"] != "c0de")

        backups.until(observe)
        assert first not in seen
        assert (seen[0], seen[-1]) == ("closed", made.status(IMPROBABLE)["bootstrap"]["token"])
        backups.ask(None)
        made.settle()
        assert CLOSED not in made.get(SERVICES)["metadata"].get("annotations", {})


def test_a_closed_service_without_its_annotation_is_opened_again() -> None:
    """Policies remove annotations that they do not know, and people clean up."""
    with stored() as (made, backups):
        first = backups.selected
        die_at_the_service(made, backups)
        made.edit(SERVICES, "c", {"metadata": {"annotations": {CLOSED: None}}})
        assert backups.selected == "closed"
        backups.ask(None)
        made.start()
        backups.until(lambda: made.names(CLAIMS) == list(OLD) and backups.selected == first)
        made.settle()
        assert_finished(made, IMPROBABLE, 3)


def test_a_seed_that_is_lost_before_its_cluster_is_on_record_leaves_no_service_that_selects_it() -> None:
    """The operator dies when the Service selects the seed, and a person removes that."""
    with stored() as (made, backups):
        first = backups.selected
        die_at_the_service(made, backups, write=2)
        assert backups.selected == made.status(IMPROBABLE)["recovery"]["token"]
        assert made.status(IMPROBABLE)["clusterID"] == "c0de"
        remove_seed(made)
        made.start()
        backups.until(is_reason(made, "QuorumLost"))
        assert backups.selected == first
        name = "c0de/backup:one/2"
        assert f"{RECOVER}={name}" in message(made)
        made.edit(IMPROBABLE, "c", {"metadata": {"annotations": {RESTORE: None, RECOVER: name}}})
        backups.until_restored()
        assert_finished(made, IMPROBABLE, 3, (3, 4, 5), kept=OLD)
        assert backups.selected == made.status(IMPROBABLE)["bootstrap"]["token"]


def cancelled(made: Bench, backups: Stored, kind: Kind) -> Json:
    """A restore that has ended, and what it has asked the API server to create of this kind."""
    late: list[Json] = []

    def timing_out(request: Request) -> Fault | None:
        if request.plural != kind.plural or request.method != "POST":
            return None
        late.append(request.body)
        return Answer(code=504, reason="Timeout", message="the webhook did not answer in time")

    made.api.before = timing_out
    backups.ask(NAME)
    made.run_until(lambda: bool(late))
    made.api.before = lambda _: None
    backups.ask(None)
    made.run_until(lambda: made.status(IMPROBABLE)["recovery"]["replaces"] == "")
    made.settle()
    return late[0]


def test_no_member_starts_on_a_claim_that_is_created_late_for_a_seed() -> None:
    """Its EtcdPeer is there already, and would take the claim for its own."""
    with stored() as (made, backups):
        late = cancelled(made, backups, CLAIMS)
        made.edit(IMPROBABLE, "c", {"spec": {"replicas": 4}})
        made.run_until(lambda: "c-3" in made.names(PEERS))
        made.create(CLAIMS, late)
        made.run_until(is_reason(made, "NameConflict"))
        assert "PersistentVolumeClaim c-3 is of another etcd cluster" in message(made)
        made.wait(30.0)
        assert "c-3" not in made.names(REPLICA_SETS)
        made.delete(CLAIMS, "c-3")
        made.settle()
        assert_finished(made, IMPROBABLE, 4)


@pytest.mark.parametrize("kind", [JOBS, CLAIMS], ids=["its Job", "its claim"])
def test_what_is_created_after_a_restore_was_cancelled_is_deleted(kind: Kind) -> None:
    """The API server gives up its reply to a creation, and carries it out when the restore has ended."""
    with stored() as (made, backups):
        late = cancelled(made, backups, kind)
        assert (made.names(JOBS), made.names(CLAIMS)) == ([], list(OLD))
        made.create(kind, late)
        made.run_until(lambda: (made.names(JOBS), made.names(CLAIMS)) == ([], list(OLD)))
        made.settle()
        assert_finished(made, IMPROBABLE, 3)


def test_no_client_reaches_a_seed_that_may_be_thrown_away() -> None:
    with stored() as (made, backups):
        seen: list[tuple[str, bool, bool]] = []

        def observe() -> bool:
            claims = {c: made.get(CLAIMS, c)["metadata"]["annotations"] for c in made.names(CLAIMS)}
            annotated = "etcd.improbable.io/cluster-id" in claims.get("c-3", {})
            old = "c-0" in made.objects()["pods"]
            seen.append((backups.selected, annotated, old))
            return bool(made.status(IMPROBABLE)["clusterID"] != "c0de")

        first = backups.selected
        backups.ask(NAME)
        backups.until(observe)
        last = backups.selected
        assert {token for token, annotated, _ in seen if not annotated} <= {first, "closed"}
        assert {token for token, annotated, _ in seen if annotated} <= {"closed", last}
        assert [token for token, _, _ in seen] == sorted(
            [token for token, _, _ in seen], key=[first, "closed", last].index
        )


def test_the_last_revision_that_was_observed_is_reported() -> None:
    """Not only what the cluster had when the restore began: a client that stays connected writes on."""
    with stored() as (made, backups):
        old = made.etcd

        def write() -> bool:
            if not has_served(made):
                old.put(b"more", b"value")
            return bool(made.status(IMPROBABLE)["clusterID"] != "c0de")

        backups.ask(NAME)
        backups.until(write)
        assert 10 < made.status(IMPROBABLE)["recovery"]["givenUp"] <= old.etcd.revision


WRITES = 25
"""From the entry in status to the recorded cluster ID, for one member."""


@pytest.mark.exhaustive
@pytest.mark.parametrize("first", range(1, WRITES + 2, 4))
@pytest.mark.parametrize("disturbance", [DISTURBANCES[lost] for lost in LOST], ids=LOST)
def test_a_restore_is_made_once_whatever_happens_at_any_write(disturbance: Disturbance, first: int) -> None:
    for write in range(first, first + 4):
        with stored(size=1) as (made, backups):
            made.kill()
            backups.ask(NAME)
            has_come = disturbance.arrange(made, write)
            if not run_or_die(made, backups.until_restored):
                backups.go_on()
            assert b"later" not in made.etcd.etcd.keys
            recovery = made.status(IMPROBABLE)["recovery"]
            assert (recovery["generation"], recovery["givenUp"]) == (1, 3)
            assert made.status(IMPROBABLE)["keptClaims"] == ["c-0"]
            assert backups.selected == recovery["token"]
            assert has_come() or write > WRITES


@pytest.mark.parametrize("write", [2, 5, 9, 13])
def test_an_operator_that_dies_goes_on(write: int) -> None:
    with stored(size=1) as (made, backups):
        made.kill()
        backups.ask(NAME)
        made.start(dies_at=write)
        assert not run_or_die(made, backups.until_restored)
        backups.go_on()
        assert (made.etcd.etcd.keys.get(b"later"), made.etcd.running) == (None, ["c-1"])
