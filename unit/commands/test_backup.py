"""`etcd-operator backup` and `list`, against a scripted etcd."""

import errno
import os
import re
import shutil
from pathlib import Path

import pytest

from etcd_operator.archive.manifest import SUFFIX
from etcd_operator.commands.flags import open_place
from etcd_operator.controllers.shared.decide.job_report import read
from unit.archive.samples import flip, snapshot
from unit.commands.cases import CASES, Case
from unit.commands.conftest import Run
from unit.fakes.etcd.cluster import FakeEtcdCluster

LONGEST_TERMINATION_MESSAGE = 4096
"""Bytes that the kubelet keeps."""


def test_a_backup_is_the_snapshot_as_etcdutl_reads_it(run: Run, endpoint: str, backups: Path) -> None:
    ran = run("backup", "--endpoints", endpoint, "--to", backups / "one.db")
    assert (ran.code, ran.err) == (0, "")
    assert re.fullmatch(
        rf"stored one\.db: revision 6, 5 keys, 40\.0 KiB, from {endpoint} in \S+ s\n", ran.out
    )
    assert (backups / "one.db").read_bytes() == snapshot()
    document = run("backup", "--endpoints", endpoint, "--to", backups / "two.db", "--json").document
    assert (document["name"], document["source"]) == ("two.db", endpoint)
    manifest = document["manifest"]
    assert (manifest["revision"], manifest["etcdVersion"], manifest["clusterID"]) == (6, "3.6.16", "c0ffee")


@pytest.mark.parametrize("form", ["{}/", "{}", "file://{}/", "file://{}"])
def test_in_a_folder_names_are_made_from_the_time(run: Run, endpoint: str, backups: Path, form: str) -> None:
    names = [
        run("backup", "--endpoints", endpoint, "--to", form.format(backups), "--json").document["name"]
        for _ in range(3)
    ]
    assert len(set(names)) == 3
    assert all(re.fullmatch(r"\d{8}T\d{6}Z(-\d)?\.db", name) for name in names)
    assert [each["name"] for each in run("list", backups, "--json").document["backups"]] == names


def test_compressed_and_encrypted(run: Run, endpoint: str, backups: Path, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_bytes(bytes(range(32)))
    flags = ("--compress", "--encryption-keys", key)
    document = run("backup", "--endpoints", endpoint, "--to", f"{backups}/", *flags, "--json").document
    manifest = document["manifest"]
    assert (manifest["compression"], manifest["encryption"]) == ("zstd", "AES-256-GCM")
    assert document["name"].endswith(".backup")
    path = backups / document["name"]
    assert run("verify", path).code == 1
    assert run("verify", path, "--encryption-keys", key).code == 0
    assert run("fetch", path, tmp_path / "s.db", "--encryption-keys", key).code == 0
    assert (tmp_path / "s.db").read_bytes() == snapshot()
    assert "zstd+AES-256-GCM" in run("list", backups).out


def test_the_list_shows_backups_and_what_is_none(run: Run, endpoint: str, backups: Path) -> None:
    assert run("list", backups).out == "no backups\n"
    for name in ("a.db", "b.db"):
        run("backup", "--endpoints", endpoint, "--to", backups / name)
    (backups / f"a.db{SUFFIX}").unlink()
    ran = run("list", backups)
    assert ran.code == 0
    rows = {line.split()[0]: line for line in ran.out.splitlines() if line}
    assert rows["NAME"].split() == ["NAME", "STATE", "TIME", "REVISION", "KEYS", "SIZE", "ETCD", "FORMAT"]
    assert " incomplete " in rows["a.db"]
    assert "a.db: no manifest: interrupted, still being written, or not a backup" in ran.out
    assert re.search(r" complete .* 6 +5 +40\.0 KiB +3\.6\.16 +plain$", rows["b.db"])
    listed = {each["name"]: each for each in run("list", backups, "--json").document["backups"]}
    assert listed["a.db"]["state"] == "incomplete"
    assert listed["b.db"]["manifest"]["keys"] == 5


def test_a_plain_line_without_a_terminal_and_nothing_when_quiet(
    run: Run, endpoint: str, backups: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("etcd_operator.commands.progress.LINE_SECONDS", 0.0)
    ran = run("backup", "--endpoints", endpoint, "--to", backups / "a.db")
    assert re.match(r"backing up: 40\.0 KiB of .*\n", ran.err)
    assert run("backup", "--endpoints", endpoint, "--to", backups / "b.db", "--quiet").err == ""


# What a person can get wrong: arguments with placeholders, exit code, the line on stderr


def fails(run: Run, code: int, text: str, *words: object) -> None:
    ran = run(*words)
    assert (ran.code, ran.err.count("\n"), ran.out) == (code, 1, "")
    assert re.search(text, ran.err), ran.err
    assert ran.err.startswith("etcd-operator: ")
    document = run(*words, "--json").document
    assert f"etcd-operator: {document['error']}\n" == ran.err


def test_nobody_listens(run: Run, etcd: FakeEtcdCluster, endpoint: str, backups: Path) -> None:
    etcd.stop("m0")
    text = f"no endpoint answers: {endpoint}: connection refused: check address and port"
    fails(run, 1, text, "backup", "--endpoints", endpoint, "--to", backups / "one.db")


def test_no_quorum(
    run: Run, etcd: FakeEtcdCluster, endpoint: str, backups: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("etcd_operator.archive.source.PATIENCE", 0.3)
    with etcd.changed:
        etcd._admit(("http://m1:2380",), name="", is_learner=False)
    words = ("backup", "--endpoints", endpoint, "--to", backups / "one.db")
    fails(run, 1, f"no quorum: {endpoint} cannot confirm.*add --without-quorum", *words)
    assert list(backups.iterdir()) == []
    ran = run(*words, "--without-quorum")
    assert ran.code == 0
    assert ran.err == f"etcd-operator: warning: {endpoint} has no quorum, the last writes may be missing\n"
    listed = run("list", backups)
    assert " complete " in listed.out
    assert "one.db: taken without a quorum: the last writes may be missing\n" in listed.out
    assert run("list", backups, "--json").document["backups"][0]["manifest"]["quorum"] is False


def test_a_user_is_required(
    run: Run, etcd: FakeEtcdCluster, endpoint: str, backups: Path, tmp_path: Path
) -> None:
    etcd.auth.require_root("secret")
    words = ("backup", "--endpoints", endpoint, "--to", backups / "one.db")
    fails(run, 1, f"{endpoint} requires a user: pass --user and --password-file", *words)
    password = tmp_path / "password"
    password.write_text("wrong\n")
    user = ("--user", "root", "--password-file", password)
    fails(run, 1, "etcd refuses user 'root' or its password", *words, *user)
    password.write_text("secret\n")
    assert run(*words, *user).code == 0


def test_a_damaged_backup_has_its_own_exit_code(run: Run, stored: Path, tmp_path: Path) -> None:
    flip(stored, 20_000)
    fails(run, 3, "does not match", "verify", stored)
    fails(run, 3, "does not match", "fetch", stored, tmp_path / "s.db")
    assert not (tmp_path / "s.db").exists()


def test_a_backup_that_was_copied_elsewhere_is_one(run: Run, stored: Path, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere"
    shutil.copytree(stored.parent, copy)
    assert run("verify", copy / "one.db").out.startswith(
        "verified one.db: revision 6, 5 keys, all hashes match"
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.words)
def test_invalid_input_is_one_line(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    (tmp_path / "DIR").mkdir()
    (tmp_path / "FULL").mkdir()
    (tmp_path / "FULL" / "file").touch()
    monkeypatch.chdir(tmp_path)
    fails(run, case.code, re.escape(case.sees) + "\n", *case.words.split())


def test_no_secret_is_printed(
    run: Run, etcd: FakeEtcdCluster, endpoint: str, backups: Path, tmp_path: Path
) -> None:
    etcd.auth.require_root("planted-password")
    (tmp_path / "password").write_text("planted-password")
    (tmp_path / "key").write_bytes(b"planted-key-\xff" + bytes(19))
    words = ["backup", "--endpoints", endpoint, "--to", backups / "one.db", "--user", "root"]
    words += ["--encryption-keys", tmp_path / "key", "--password-file", tmp_path / "password"]
    printed = [run(*words, "--json"), run(*words), run("list", backups), run("verify", backups / "one.db")]
    stored = b"".join(path.read_bytes() for path in backups.iterdir())
    for secret in ("planted-password", "planted-key", "token-of-root"):
        assert secret not in "".join(each.out + each.err for each in printed)
        assert secret.encode() not in stored


def test_a_folder_that_may_not_be_entered(backups: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may enter all, so the system call is replaced."""

    def refused(_path: object, **_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    to = backups / "one.db"
    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", refused)
        place = open_place(str(to))
    assert (place.name, place.is_folder) == ("one.db", False)


def test_the_report_for_who_runs_it(run: Run, endpoint: str, backups: Path, tmp_path: Path) -> None:
    report = tmp_path / "report"
    done = run("backup", "--endpoints", endpoint, "--to", backups / "one.db", "--report", report)
    assert done.code == 0
    stored = read(report.read_text())
    assert stored is not None
    assert stored.manifest is not None
    assert (stored.manifest.revision, stored.manifest.etcd_version, stored.source) == (6, "3.6.16", endpoint)
    again = run("backup", "--endpoints", endpoint, "--to", backups / "one.db", "--report", report, "--json")
    assert again.code == 1
    failed = read(report.read_text())
    assert failed is not None
    assert (failed.reason, failed.error) == ("NameTaken", again.document["error"])
    assert len(report.read_bytes()) < LONGEST_TERMINATION_MESSAGE


def test_a_report_that_cannot_be_written_does_not_fail_the_backup(
    run: Run, endpoint: str, backups: Path, tmp_path: Path
) -> None:
    ran = run("backup", "--endpoints", endpoint, "--to", backups / "one.db", "--report", tmp_path)
    assert ran.code == 0
    assert f"warning: cannot write the report {tmp_path}: Is a directory" in ran.err


def test_the_report_of_a_long_error_can_be_read(run: Run, backups: Path, tmp_path: Path) -> None:
    report = tmp_path / "report"
    name = "\N{CROSS MARK}" * 3000
    assert run("backup", "--endpoints", name, "--to", backups / "one.db", "--report", report).code == 2
    assert len(report.read_bytes()) < LONGEST_TERMINATION_MESSAGE
    failed = read(report.read_text())
    assert failed is not None
    assert failed.reason == "UsageError"
