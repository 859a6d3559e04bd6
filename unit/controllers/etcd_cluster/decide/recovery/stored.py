"""States of persistent clusters with EtcdBackups, and of their restore after a loss and in place."""

from dataclasses import replace
from typing import Any

import msgspec

from etcd_operator.api.recoveries import Recovery, StoredBackup
from etcd_operator.controllers.etcd_cluster.decide.recovery.observed import BackupFacts, CompletedBackup
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.shared.decide.job_report import JobReport
from etcd_operator.controllers.shared.decide.job_state import JobEnd, JobState
from unit.controllers.etcd_cluster.decide.builders import (
    CLUSTER_ID,
    NAMES,
    TOKEN,
    VERSION,
    answer,
    answering,
    bootstrapped,
    claim,
    entry,
    first_recovery,
    peer,
    persistent,
    silent,
    unlisted,
    with_record,
)

TIME = "2026-01-01T00:00:00Z"
SOURCE = StoredBackup(
    cluster="db",
    name="one",
    sha256="ab",
    time=TIME,
    age=3600,
    url="s3://b/one.db",
    size=20512,
    spec={"a": 1},
)
RECOVERY = first_recovery("db-3", revision=9, source=SOURCE, authority="Requested")
IN_PLACE = msgspec.structs.replace(RECOVERY, authority="InPlace", given_up=20)
LOST_NAME = f"{CLUSTER_ID}/backup:one/1"
NAME = f"{CLUSTER_ID}/one/1"
LOST_CLAIM = claim("db-3", token=f"{TOKEN}-1", is_restored=True, is_lost=True)
"""The claim of the seed, whose volume is gone."""


def backup(name: str = "one", **changes: Any) -> CompletedBackup:
    """A completed EtcdBackup of the recorded etcd cluster."""
    made = CompletedBackup(
        name=name,
        uid=f"uid-{name}",
        cluster_id=CLUSTER_ID,
        revision=9,
        etcd_version=VERSION,
        sha256="ab",
        time=TIME,
        age=3600,
        url=f"s3://b/{name}.db",
        size=20512,
        spec={"a": 1},
    )
    return replace(made, **changes)


def sight(*backups: CompletedBackup, **changes: Any) -> BackupFacts:
    """What is known of them, by default of one."""
    return replace(BackupFacts(is_listed=True, stored=backups or (backup(),)), **changes)


def job(**changes: Any) -> JobState:
    """The Job that restores to the claim of the seed; it runs."""
    made = JobState(name="db-seed", is_running=True, claim_uid="claim-db-3")
    return replace(made, **changes)


FAILED = job(
    end=JobEnd.FAILED, is_running=False, report=JobReport(error="one.db is damaged", reason="Damaged")
)
DONE = job(end=JobEnd.SUCCEEDED, is_running=False)


def live(asked: str = "", **changes: Any) -> ClusterState:
    """A cluster that serves at revision 20, with a backup."""
    state = answering(bootstrapped(persistent(restore_in_place=asked)), *NAMES, revision=20)
    return replace(state, **{"backups": sight(), **changes})


def remembering(state: ClusterState, recovery: Recovery) -> ClusterState:
    """A recovery is under way."""
    return with_record(state, recovery=recovery)


def filling(state: ClusterState, recovery: Recovery = IN_PLACE, **parts: Any) -> ClusterState:
    """The claim of the seed exists, and no EtcdPeer."""
    made = claim("db-3", token=f"{TOKEN}-1", is_restored=True)
    seed = silent(state.desired, "db-3", **{"claim": made, "peer": None, "pod": None, **parts})
    state = remembering(state, recovery)
    return replace(state, members=(*state.members, seed))


def seeding(state: ClusterState, recovery: Recovery = IN_PLACE, **parts: Any) -> ClusterState:
    """Its EtcdPeer exists, too, and its pod is silent."""
    made = silent(state.desired, "db-3")
    return filling(
        state, recovery, **{"peer": peer("db-3"), "pod": made.pod, "has_replica_set": True, **parts}
    )


def served(state: ClusterState, recovery: Recovery = IN_PLACE, **parts: Any) -> ClusterState:
    """The seed leads a cluster of its own, with the data of the backup."""
    listed = (entry("db-3"),)
    reply = answer("db-3", listed, cluster_id="feed", revision=9 + recovery.bump)
    return unlisted(seeding(state, recovery, **{"entry": listed[0], "answer": reply, **parts}), *NAMES)


def final_claim() -> Any:
    """The claim of a seed that was found to serve."""
    return claim("db-3", token=f"{TOKEN}-1", cluster_id="feed", is_restored=True)
