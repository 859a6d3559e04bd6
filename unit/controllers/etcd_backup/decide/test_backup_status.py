"""What the status of an EtcdBackup reports, and what of it comes from the pod."""

import msgspec
import pytest

from etcd_operator.api.backups import BackupStatus
from etcd_operator.archive.errors import SourceError
from etcd_operator.controllers.etcd_backup.decide.result import failure
from etcd_operator.controllers.etcd_backup.decide.status import status
from etcd_operator.controllers.shared.decide.job_report import BACKUP_REASONS, JobReport, read
from etcd_operator.formats import CORRUPT_ALARM, bytes_text
from etcd_operator.pods.contract import ETCD_FOLDER
from etcd_operator.storage.errors import StoreError
from unit.controllers.etcd_backup.decide.test_backups import MANIFEST, job, planned, pod, state


def test_the_status_of_a_failed_backup_has_no_figures() -> None:
    given = state(job(pod(exit_code=1, report=JobReport(error="no bucket b", reason="BucketMissing"))))
    made = status(BackupStatus(), given, planned(given), generation=1, now="2026-11-22T15:00:05Z")
    assert (made.phase, made.revision, made.sha256, made.completion_time) == (
        "Failed",
        0,
        "",
        "2026-11-22T15:00:05Z",
    )
    assert [(each.type, each.status) for each in made.conditions] == [
        ("Complete", "False"),
        ("Failed", "True"),
    ]
    assert {each.message for each in made.conditions} == {"no bucket b"}


def test_what_was_taken_under_an_alarm_corrupt_is_marked() -> None:
    for is_marked in (False, True):
        manifest = msgspec.structs.replace(MANIFEST, corrupt_alarm=is_marked)
        given = state(job(pod(exit_code=0, report=JobReport(manifest=manifest, seconds=1.0))))
        made = status(BackupStatus(), given, planned(given), generation=1, now="2026-11-22T15:00:05Z")
        assert (made.phase, made.corrupt_alarm) == ("Completed", is_marked)
        assert all((CORRUPT_ALARM in each.message) is is_marked for each in made.conditions)


def test_a_pass_without_news_writes_nothing() -> None:
    given = state(job(pod(has_started=True)))
    first = status(BackupStatus(), given, planned(given), generation=1, now="2026-11-22T15:00:00Z")
    assert status(first, given, planned(given), generation=1, now="2026-11-22T16:00:00Z") == first


TLS = "c: it closed the connection: if it uses TLS, pass --cacert (and --cert, --key)"
USER = "a requires a user: pass --user and --password-file, or the client certificate of a user"
REPORTED = [
    ("BucketMissing", "no bucket b", "BucketMissing", "no bucket b"),
    ("NoQuorum", "x: add --without-quorum", "SourceWithoutQuorum", "majority"),
    ("NotReachable", "a: check --endpoints", "SourceUnreachable", "a: check spec.source"),
    ("NotReachable", TLS, "SourceUnreachable", "write https:// and set spec.source.tlsSecret"),
    ("NotReachable", "c: not signed by the given CA: check --cacert", "SourceUnreachable", "check the CA"),
    ("AccessRefused", USER, "SourceRefusedAccess", "set spec.source.auth, or use the certificate of a user"),
    ("BadCredentials", f"no {ETCD_FOLDER}/ca.crt", "BadCredentials", "no spec.source.tlsSecret: ca.crt"),
    ("Interrupted", "interrupted by SIGTERM", "Interrupted", "stopped"),
    ("Novel", "new kind of error", "BackupFailed", "new kind of error"),
]
"""Kind and text of an error that the command reports; the reason, and a part of the text, in the status."""


@pytest.mark.parametrize(("kind", "text", "expected", "part"), REPORTED)
def test_what_a_pod_reported(kind: str, text: str, expected: str, part: str) -> None:
    report = JobReport(error=text, reason=kind)
    found, message = failure(pod(exit_code=1, reason="Error", report=report), "one")
    assert (found, part in message, "--" in message) == (expected, True, False)


@pytest.mark.parametrize(
    ("exit_code", "reason", "expected", "part"),
    [
        (137, "OOMKilled", "OutOfMemory", "its memory limit of 512Mi"),
        (1, "Error", "BackupFailed", "exit code 1 and without a report: see `kubectl logs job/one`"),
        (128, "StartError", "BackupFailed", "exit code 128 (StartError)"),
    ],
)
def test_why_a_pod_failed_that_reported_nothing(
    exit_code: int, reason: str, expected: str, part: str
) -> None:
    memory = "it reached its memory limit of 512Mi" if reason == "OOMKilled" else ""
    found, message = failure(pod(exit_code=exit_code, reason=reason, message=memory), "one")
    assert (found, part in message) == (expected, True)


def test_no_message_is_longer_than_a_status_should_have() -> None:
    long = JobReport(error="x" * 5000, reason="StoreError")
    assert len(failure(pod(exit_code=1, report=long), "one")[1]) == 1000


@pytest.mark.parametrize("text", ["", "Traceback ...", "[]", '{"manifest": {"revision": "many"}}'])
def test_what_is_no_report_is_none(text: str) -> None:
    assert read(text) is None


def test_every_kind_of_error_of_stores_and_sources_has_a_reason() -> None:
    found = (*StoreError.__subclasses__(), *SourceError.__subclasses__())
    modules = {StoreError.__module__, SourceError.__module__}  # stores handle others of their own
    kinds = {kind.__name__ for kind in found if kind.__module__ in modules}
    assert len(kinds) > 10
    assert kinds - set(BACKUP_REASONS) <= {"ObjectMissing"}, "a backup reads nothing that it did not store"


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 << 40, "5.0 TiB")]
)
def test_sizes_for_people(count: int, text: str) -> None:
    assert bytes_text(count) == text
