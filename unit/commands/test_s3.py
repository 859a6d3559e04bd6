"""The commands with a bucket: what a plain folder cannot show."""

import signal
import subprocess
import sys
from pathlib import Path
from threading import Event

from unit.archive.samples import chunks, snapshot
from unit.commands.conftest import Bucket, Run
from unit.fakes.etcd.cluster import FakeEtcdCluster
from unit.storage import moto_s3
from unit.waiting import eventually

LARGE = snapshot(3, value=8 << 20)


def test_from_a_backup_to_a_file(run: Run, endpoint: str, bucket: Bucket, tmp_path: Path) -> None:
    ran = run("backup", "--endpoints", endpoint, "--to", bucket.url("a/"), "--compress", "--json")
    assert (ran.code, ran.err) == (0, "")
    name = ran.document["name"]
    assert name.startswith("a/")
    run("backup", "--endpoints", endpoint, "--to", bucket.url("a-b/other.db"))
    listed = run("list", bucket.url("a"), "--json").document["backups"]
    assert [(each["name"], each["state"]) for each in listed] == [(name.removeprefix("a/"), "complete")]
    assert run("verify", bucket.url(f"{name}")).code == 0
    assert run("fetch", bucket.url(f"{name}"), tmp_path / "s.db").code == 0
    assert (tmp_path / "s.db").read_bytes() == snapshot()
    taken = run("backup", "--endpoints", endpoint, "--to", bucket.url(f"{name}"))
    assert (taken.code, "exists already: choose another name" in taken.err) == (1, True)


def test_a_signal_in_the_middle_leaves_no_parts(etcd: FakeEtcdCluster, endpoint: str, bucket: Bucket) -> None:
    reached, resume = Event(), Event()
    etcd.damage = lambda _: LARGE
    last = len(list(chunks(LARGE))) - 1

    def hold(index: int) -> None:
        if index == last:
            reached.set()
            resume.wait(60)

    etcd.on_chunk = hold
    command = [sys.executable, "-m", "etcd_operator", "backup", "--endpoints", endpoint]
    command += ["--to", bucket.url("one.db")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert reached.wait(60)
        eventually(lambda: moto_s3.uploads() != [])
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    finally:
        resume.set()
    assert (process.returncode, err) == (143, "etcd-operator: interrupted by SIGTERM\n")
    assert moto_s3.uploads() == []
