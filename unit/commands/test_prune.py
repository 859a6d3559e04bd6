"""`etcd-operator prune`, and the Job of a schedule that runs it."""

import json
from pathlib import Path

import pytest

from etcd_operator.api.backup_schedules import Retention
from etcd_operator.archive.keys import EncryptionKey
from etcd_operator.archive.manifest import SUFFIX
from etcd_operator.controllers.shared.decide.backup_spec import CLAIM_FOLDER
from etcd_operator.controllers.shared.decide.job_report import JobReport, read
from etcd_operator.storage.directory import Directory
from etcd_operator.storage.errors import AccessDenied
from unit.archive.samples import counted
from unit.commands.conftest import Run, job_ran
from unit.controllers.manifests.backups import prune_job_of

NIGHTLY = "team/nightly/uid-schedule"
LONG_AGO = -2 * 365 * 1440.0
"""Before now, whatever the clock of this machine shows."""

LONGEST_TERMINATION_MESSAGE = 4096


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(SUFFIX))


@pytest.fixture
def five(backups: Path) -> Path:
    """Five backups of revision 8 to 12, an hour apart."""
    for revision in range(8, 13):
        minutes = revision * 60 + LONG_AGO
        counted(Directory(backups), f"b-{revision}.db", revision, minutes=minutes)
    return backups


def test_the_newest_are_kept(run: Run, five: Path) -> None:
    ran = run("prune", five, "--max-count", 2)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "removed b-8.db\nremoved b-9.db\nremoved b-10.db\nremoved 3 backups of 72.1 KiB, kept 2\n"
    )
    assert names(five) == ["b-11.db", "b-12.db"]
    assert len(list(five.iterdir())) == 4
    again = run("prune", five, "--max-count", 2)
    assert (again.code, again.out) == (0, "nothing to remove: kept 2\n")


def test_a_dry_run_changes_nothing(run: Run, five: Path) -> None:
    ran = run("prune", five, "--max-age", "90m", "--dry-run", "--keep", "b-9.db")
    assert ran.out.splitlines()[-1].startswith("would remove 2 backups of ")
    assert len(names(five)) == 5
    document = run("prune", five, "--max-age", "90m", "--dry-run", "--json").document
    assert document["names"] == ["b-8.db", "b-9.db", "b-10.db"]
    assert (document["removed"], document["kept"], document["dryRun"]) == (3, 2, True)
    assert len(names(five)) == 5


def test_with_keys_a_backup_of_somebody_without_them_displaces_none_and_stays(
    run: Run, backups: Path, tmp_path: Path
) -> None:
    mine, others = EncryptionKey(bytes(range(32))), EncryptionKey(bytes(32))
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "key-1").write_bytes(mine.secret)
    store = Directory(backups)
    for revision in range(8, 11):
        counted(store, f"b-{revision}.db", revision, key=mine, minutes=revision + LONG_AGO)
    counted(store, "plain.db", 98, minutes=98 + LONG_AGO)
    counted(store, "theirs.db", 99, key=others, minutes=99 + LONG_AGO)
    for name, copy in (("b-10.db", "copy.db"), (f"b-10.db{SUFFIX}", f"copy.db{SUFFIX}")):
        store.put(copy, store.read(name))
    ran = run("prune", backups, "--max-count", 2, "--encryption-keys", tmp_path / "keys")
    assert ran.code == 0
    assert ran.out.endswith("kept 2\nleft out 3 backups that somebody without these keys stored\n")
    assert names(backups) == ["b-10.db", "b-9.db", "copy.db", "plain.db", "theirs.db"]


def test_only_one_series_and_only_names_that_match(run: Run, five: Path) -> None:
    store = Directory(five)
    counted(store, "s-1.db", 100, series="s")
    counted(store, "below/s-2.db", 101, series="s")
    counted(store, "copy/s-2.db", 102, series="s")
    assert run("prune", five, "--max-count", 1, "--match", "b-1?.db").code == 0
    assert names(five) == ["b-12.db", "b-8.db", "b-9.db", "below", "copy", "s-1.db"]
    assert (
        run("prune", five, "--max-count", 1, "--series", "s", "--match", "below/*", "--json").document["kept"]
        == 1
    )
    document = run("prune", five, "--max-count", 1, "--series", "s", "--json").document
    assert document["names"] == ["s-1.db", "below/s-2.db"]
    assert run("prune", five, "--max-count", 1, "--series", "none").out == "no backups of this series\n"


def test_a_backup_names_its_series(run: Run, endpoint: str, backups: Path) -> None:
    for name in ("a.db", "b.db"):
        run("backup", "--endpoints", endpoint, "--to", backups / name, "--series", "hourly")
    manifest = json.loads((backups / f"a.db{SUFFIX}").read_text())
    assert manifest["series"] == "hourly"
    assert run("prune", backups, "--max-count", 1).out == "no backups of this series\n"
    assert run("prune", backups, "--max-count", 1, "--series", "hourly").code == 0
    assert len(names(backups)) == 1


def test_names_are_those_of_the_list(run: Run, five: Path) -> None:
    counted(Directory(five), "deep/one.db", 3)
    counted(Directory(five), "deep/two.db", 4)
    assert (
        run("prune", five / "deep", "--max-count", 1, "--keep", "one.db", "--json").document["removed"] == 0
    )
    document = run("prune", five / "deep/", "--max-count", 1, "--json").document
    assert document["names"] == ["one.db"]
    assert len(names(five)) == 6


def test_a_failure_is_one_line(run: Run, five: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_self: Directory, name: str) -> None:
        raise AccessDenied(f"{name} may not be deleted.")

    monkeypatch.setattr(Directory, "delete", refuse)
    ran = run("prune", five, "--max-count", 3)
    text = "2 of 2 old backups could not be removed: b-8.db may not be deleted."
    assert (ran.code, ran.out, ran.err) == (1, "", f"etcd-operator: {text}\n")
    assert run("prune", five, "--max-count", 3, "--json").document == {
        "error": text,
        "reason": "AccessDenied",
    }


def test_progress_counts_bytes(run: Run, five: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("etcd_operator.commands.progress.LINE_SECONDS", 0.0)
    ran = run("prune", five, "--max-count", 4)
    assert ran.err.startswith("removing: 24.0 KiB of 24.0 KiB")


def test_the_job_of_a_schedule_does_what_its_retention_requests(
    run: Run, backups: Path, tmp_path: Path
) -> None:
    store = Directory(backups)
    for day in range(10, 30):
        counted(store, f"nightly-202611{day}-0330.db", day, series=NIGHTLY, minutes=day * 1440)
    counted(store, "nightly-20261130-0330.db", 99, series="team/nightly/uid-of-a-former-schedule")
    counted(store, "nightly-20261110-0330.db.copy", 98, series=NIGHTLY)
    job = prune_job_of(
        "file:///{{ .Name }}.db",
        Retention(max_count=2),
        "file:///nightly-20261111-0330.db",
        "file:///nightly-20261129-0330.db",
        persistentVolumeClaim={"claimName": "backups"},
    )
    ran, report = job_ran(run, job, tmp_path, {f"file://{CLAIM_FOLDER}": f"file://{backups}"})
    assert ran.code == 0
    assert names(backups) == [
        "nightly-20261110-0330.db.copy",
        "nightly-20261111-0330.db",
        "nightly-20261128-0330.db",
        "nightly-20261129-0330.db",
        "nightly-20261130-0330.db",
    ]
    assert (tmp_path / "termination-log").stat().st_size < LONGEST_TERMINATION_MESSAGE
    assert report == JobReport(removed=17, kept=3)


def test_a_job_without_a_store_reports_why(run: Run, tmp_path: Path) -> None:
    report = tmp_path / "termination-log"
    ran = run("prune", f"{tmp_path}/none/", "--max-count", 1, "--json", "--report", report)
    found = read(report.read_text())
    assert (ran.code, found is not None and found.reason) == (1, "BucketMissing")
