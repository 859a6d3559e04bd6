"""What the status reports of backups."""

from dataclasses import replace

import msgspec
import pytest

from etcd_operator.api.cluster_spec import Encryption, S3Target
from etcd_operator.api.coreos_backup import ClusterBackupStatus
from etcd_operator.api.meta import Condition
from etcd_operator.controllers.backup_tool.decide.health import (
    SETTLING_SECONDS,
    Problem,
    ToolFacts,
    condition,
    stored,
)
from etcd_operator.controllers.backup_tool.decide.policy import NO_BACKUPS, Wanted
from etcd_operator.controllers.backup_tool.decide.state import ToolState
from etcd_operator.controllers.shared.decide.backup_health import HEALTHY, merged
from etcd_operator.formats import CORRUPT_ALARM
from etcd_operator.pods.reports import BackupReport, LastFailure, ToolReport
from unit.controllers.backup_tool.decide.test_backup_tool_plan import IN_S3, POD, SETS, SETTLED

NOW = "2026-11-22T18:00:00Z"
NEWEST = BackupReport(
    name="3.6.16_000000000000000a_etcd.backup",
    time="2026-11-22T17:00:00Z",
    revision=10,
    size=20512,
    etcd_version="3.6.16",
    sha256="ab" * 32,
    is_authentic=True,
    took=1.5,
)
REPORT = ToolReport(newest=NEWEST, count=2, total_size=41024, since_success=5.0)
WITH_SECRET = msgspec.structs.replace(IN_S3, s3=S3Target(s3_bucket="b", aws_secret="aws"))
WITH_KEYS = msgspec.structs.replace(WITH_SECRET, encryption=Encryption(secret_name="keys"))
FAILED = LastFailure(time=NOW, reason="BucketMissing", message="The bucket b does not exist.")
LIMIT = 3600.0


def judged(state: ToolState, sight: ToolFacts, *previous: Condition) -> tuple[str, str, str]:
    found = condition(state, sight, previous, stored(None, REPORT), generation=7)
    assert found is not None
    assert (found.type, found.observed_generation) == (HEALTHY, 7)
    return found.status, found.reason, found.message


def test_a_recent_success_is_healthy_whatever_fails_now() -> None:
    failing = ToolFacts(report=msgspec.structs.replace(REPORT, failure=FAILED), since_success=LIMIT)
    fine = ("True", "BackedUp", "a backup is taken every 1800 seconds")
    assert judged(SETTLED, ToolFacts(report=REPORT, since_success=5.0)) == fine
    assert judged(SETTLED, failing) == fine
    assert judged(replace(SETTLED, pods=()), failing) == fine


def test_a_backup_under_an_alarm_corrupt_is_reported() -> None:
    marked = msgspec.structs.replace(REPORT, newest=msgspec.structs.replace(NEWEST, corrupt_alarm=True))
    found = stored(None, marked)
    assert found is not None
    assert found.corrupt_alarm
    status, _, message = judged(SETTLED, ToolFacts(report=marked, since_success=5.0))
    assert status == "True"
    assert message.endswith(f"; no old one is removed, because the newest was {CORRUPT_ALARM}")


def test_another_cluster_that_stores_in_the_same_folder_is_reported() -> None:
    sight = ToolFacts(report=msgspec.structs.replace(REPORT, foreign_owner="u-2"), since_success=5.0)
    text = (
        "another EtcdCluster (UID u-2) stores backups in the same folder of the bucket, like one with the "
        "same namespace and name in another Kubernetes cluster: set another spec.backup.s3.prefix in one of "
        "the two"
    )
    assert judged(SETTLED, sight) == ("False", "ForeignWriter", text)


def test_what_the_operator_cannot_do_is_reported_while_backups_go_on() -> None:
    refused = ToolFacts(report=REPORT, since_success=5.0, refused="the claim cannot grow")
    assert judged(SETTLED, refused) == (
        "True",
        "BackedUp",
        "a backup is taken every 1800 seconds, but spec.backup is not fully applied: the claim cannot grow",
    )


def test_the_reason_of_an_old_success_is_reported() -> None:
    late = f"the last success is more than {LIMIT:.0f} seconds ago"
    failing = ToolFacts(report=msgspec.structs.replace(REPORT, failure=FAILED), since_success=LIMIT + 1)
    assert judged(SETTLED, failing) == ("False", "BucketMissing", f"{late}: {FAILED.message}")
    silent = ToolFacts(since_success=LIMIT + 1)
    assert judged(SETTLED, silent) == ("False", "Overdue", f"{late}, and the backup tool reports no reason")
    no_quorum = msgspec.structs.replace(FAILED, reason="NoQuorum", message="add --without-quorum")
    found = judged(
        SETTLED, ToolFacts(report=msgspec.structs.replace(REPORT, failure=no_quorum), since_success=LIMIT + 1)
    )
    assert found[1] == "SourceWithoutQuorum"
    assert "--without-quorum" not in found[2]
    strange = msgspec.structs.replace(FAILED, reason="ValueError")
    odd = ToolFacts(report=msgspec.structs.replace(REPORT, failure=strange), since_success=LIMIT + 1)
    assert judged(SETTLED, odd)[1] == "BackupFailed"


@pytest.mark.parametrize(
    ("state", "sight", "reason", "message"),
    [
        (replace(SETTLED, is_bootstrapped=False), ToolFacts(), "ClusterNotReady", "has not served yet"),
        (
            SETTLED,
            ToolFacts(problem=Problem(reason="Forbidden", message="no right")),
            "Forbidden",
            "no right",
        ),
        (replace(SETTLED, pods=()), ToolFacts(), "ToolNotRunning", "has no pod: it is being created"),
        (
            replace(SETTLED, pods=(), replica_set=replace(SETS, problem="quota exceeded")),
            ToolFacts(),
            "ToolNotRunning",
            "has no pod: quota exceeded",
        ),
        (replace(SETTLED, pods=(), replica_set=None), ToolFacts(), "ToolNotRunning", "it is being created"),
        (
            replace(SETTLED, pods=(replace(POD, is_ready=False, waits_for="ErrImagePull: gone"),)),
            ToolFacts(),
            "ToolNotRunning",
            "is not ready: ErrImagePull: gone",
        ),
        (
            replace(SETTLED, pods=(replace(POD, is_ready=False),)),
            ToolFacts(),
            "ToolNotRunning",
            "see `kubectl describe pod c-backup-tool-x`: it also shows whether a volume is missing",
        ),
        (
            replace(SETTLED, pods=(replace(POD, is_ready=False),), wanted=Wanted(policy=WITH_SECRET)),
            ToolFacts(),
            "ToolNotRunning",
            "it also shows whether a volume or the Secret aws is missing",
        ),
        (
            replace(SETTLED, pods=(replace(POD, is_ready=False),), wanted=Wanted(policy=WITH_KEYS)),
            ToolFacts(),
            "ToolNotRunning",
            "it also shows whether a volume or the Secret aws or the Secret keys is missing",
        ),
        (SETTLED, ToolFacts(), "FirstBackupPending", "the first backup has not been taken yet"),
    ],
)
def test_before_the_first_success(state: ToolState, sight: ToolFacts, reason: str, message: str) -> None:
    pending = judged(state, replace(sight, waited=LIMIT))
    assert pending[:2] == ("Unknown", reason)
    assert message in pending[2]
    late = judged(state, replace(sight, waited=LIMIT + 1))
    assert late[0] == "False"
    assert late[2].startswith("no backup has succeeded yet")
    assert message in late[2] or reason == "FirstBackupPending"


def test_a_tool_that_was_just_started_changes_nothing_for_a_minute() -> None:
    starting = msgspec.structs.replace(REPORT, is_starting=True)
    old = ToolFacts(report=starting, since_success=10 * LIMIT, tool_age=SETTLING_SECONDS)
    before = Condition(type=HEALTHY, status="True", reason="BackedUp", message="fine")
    assert judged(SETTLED, old, before) == ("True", "BackedUp", "fine")
    assert judged(SETTLED, old)[0] == "False"
    assert judged(SETTLED, replace(old, tool_age=SETTLING_SECONDS + 1), before)[0] == "False"
    failed = msgspec.structs.replace(before, status="False")
    assert judged(SETTLED, old, failed)[0] == "False"
    unknown = msgspec.structs.replace(before, status="Unknown")
    assert judged(SETTLED, replace(old, since_success=1.0), unknown)[0] == "True"


def test_an_operator_that_was_just_started_waits_for_the_first_report() -> None:
    """A cluster that does not change has an old backup, and is healthy."""
    before = Condition(type=HEALTHY, status="True", reason="BackedUp", message="fine")
    silent = ToolFacts(since_success=10 * LIMIT, waited=SETTLING_SECONDS)
    assert judged(SETTLED, silent, before) == ("True", "BackedUp", "fine")
    assert judged(SETTLED, replace(silent, waited=SETTLING_SECONDS + 1), before)[0] == "False"


def test_an_invalid_policy_is_reported_and_none_is_not() -> None:
    wrong = replace(SETTLED, wanted=Wanted(problem="spec.backup: wrong"))
    assert judged(wrong, ToolFacts()) == ("False", "InvalidSpec", "spec.backup: wrong")
    assert condition(replace(SETTLED, wanted=NO_BACKUPS), ToolFacts(), (), None, generation=1) is None


def test_what_is_stored_is_kept_while_nobody_reports() -> None:
    known = stored(None, REPORT)
    assert known == ClusterBackupStatus(
        time=NEWEST.time, name=NEWEST.name, revision=10, sha256=NEWEST.sha256, size=20512,
        etcd_version="3.6.16", took=1.5, count=2, total_size=41024,
    )  # fmt: skip
    assert stored(known, None) == known
    assert stored(known, ToolReport()) == ClusterBackupStatus()
    assert stored(known, ToolReport(is_starting=True)) == known  # it may not have read yet what is stored


PLANTED = msgspec.structs.replace(
    NEWEST, name="3.6.16_000000000000000c_etcd.backup", revision=12, is_authentic=False
)


def test_what_is_only_listed_takes_no_record_of_what_was_stored() -> None:
    known = stored(None, REPORT)
    assert known is not None
    listed = stored(known, msgspec.structs.replace(REPORT, newest=PLANTED, count=3))
    assert listed == msgspec.structs.replace(known, count=3)
    assert stored(None, ToolReport(newest=PLANTED, count=1)) == ClusterBackupStatus(count=1)
    renewed = msgspec.structs.replace(NEWEST, is_authentic=False)  # another token
    assert stored(known, msgspec.structs.replace(REPORT, newest=renewed)) == known
    replaced = msgspec.structs.replace(renewed, sha256="cd" * 32, revision=12)
    assert stored(known, msgspec.structs.replace(REPORT, newest=replaced)) == known


def test_a_tool_with_an_earlier_token_takes_the_record_only_once_it_has_stored_more() -> None:
    known = stored(None, REPORT)
    assert known is not None
    on_record = msgspec.structs.replace(NEWEST, is_authentic=False)
    older = msgspec.structs.replace(NEWEST, name="3.6.16_0000000000000004_etcd.backup", revision=4)
    report = msgspec.structs.replace(REPORT, newest=older, unknown=on_record, count=3)
    assert stored(known, report) == msgspec.structs.replace(known, count=3)
    newer = msgspec.structs.replace(NEWEST, name="3.6.16_000000000000000b_etcd.backup", revision=11)
    changed = stored(known, msgspec.structs.replace(report, newest=newer))
    assert changed is not None
    assert changed.revision == 11


def test_what_is_only_listed_is_named_unless_it_is_on_record() -> None:
    def reason(unknown: BackupReport) -> str:
        report = msgspec.structs.replace(REPORT, unknown=unknown)
        _, reason, message = judged(SETTLED, ToolFacts(report=report, since_success=5.0))
        assert (unknown.name in message) == (reason == "UnknownBackup")
        return reason

    assert reason(PLANTED) == "UnknownBackup"
    assert reason(msgspec.structs.replace(NEWEST, is_authentic=False)) == "BackedUp"
    assert reason(msgspec.structs.replace(NEWEST, is_authentic=False, sha256="cd" * 32)) == "UnknownBackup"


def test_a_listed_backup_that_the_keys_refuse_is_named_with_the_reason() -> None:
    plain = msgspec.structs.replace(PLANTED, refusal="it is not encrypted")
    report = msgspec.structs.replace(REPORT, unknown=plain)
    status, reason, message = judged(SETTLED, ToolFacts(report=report, since_success=5.0))
    assert (status, reason) == ("False", "UnknownBackup")
    assert message.startswith("no recovery uses the newest backup that is listed, ")
    assert message.endswith(f"{PLANTED.name}: it is not encrypted, or move it away with its manifest")


def test_a_tool_that_was_restarted_does_not_know_how_long_the_backup_took() -> None:
    known = stored(None, REPORT)
    forgot = msgspec.structs.replace(NEWEST, took=0.0)
    assert stored(known, msgspec.structs.replace(REPORT, newest=forgot)) == known
    other = msgspec.structs.replace(forgot, name="3.6.16_000000000000000b_etcd.backup")
    changed = stored(known, msgspec.structs.replace(REPORT, newest=other))
    assert changed is not None
    assert changed.took == 0.0


AVAILABLE = Condition(type="Available", status="True", reason="QuorumHealthy", last_transition_time=NOW)


def test_the_condition_comes_last_and_others_keep_their_place() -> None:
    mine = Condition(type=HEALTHY, status="True", reason="BackedUp", message="m")
    first = merged((AVAILABLE,), mine, NOW)
    assert [each.type for each in first] == ["Available", HEALTHY]
    assert first[1].last_transition_time == NOW
    assert merged(first, mine, "2026-11-22T19:00:00Z") == first
    assert merged((first[1], AVAILABLE), mine, NOW) == first
    assert merged(first, None, NOW) == (AVAILABLE,)


def test_numbers_in_a_message_do_not_make_a_new_one() -> None:
    one = Condition(type=HEALTHY, status="False", reason="Unreachable", message="10.0.0.1:4711 is silent")
    before = merged((), one, NOW)
    again = msgspec.structs.replace(one, message="10.0.0.1:4712 is silent")
    assert merged(before, again, "2026-11-22T19:00:00Z") == before
    other = msgspec.structs.replace(one, message="10.0.0.1:4712 refuses")
    assert merged(before, other, NOW)[0].message == other.message
    unknown = msgspec.structs.replace(again, status="Unknown")
    assert merged(before, unknown, NOW)[0].message == again.message
