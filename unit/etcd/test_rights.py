"""etcd on volumes that it owns, and on others: what it logs, and what fsGroup is for."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from e2e.support.keys import KeyClient
from etcd_operator.controllers.etcd_cluster.members.etcd_log import NO_RIGHTS
from etcd_operator.controllers.etcd_cluster.members.pod_facts import pod_facts
from etcd_operator.controllers.shared.manifests.security import USER
from etcd_operator.etcd.channel import Channels
from etcd_operator.kube.pod_views import Pod
from unit.etcd.real import free_address
from unit.waiting import eventually

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="changes users: needs root")


@pytest.fixture
def volume() -> Iterator[Path]:
    """A folder that every user gets to, but only this one may write."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@contextmanager
def etcd(binaries: Path, volume: Path, user: int, *, address: str = "127.0.0.1:0") -> Iterator[Path]:
    """A member of one; yields its log."""
    words = ["--data-dir", str(volume), f"--listen-client-urls=http://{address}"]
    words += [f"--advertise-client-urls=http://{address}", "--listen-peer-urls=http://127.0.0.1:0"]
    log = volume.with_suffix(".log")
    # The program may lie where only root gets to; this link needs no way there.
    with log.open("wb") as sink, (binaries / "etcd").open("rb") as program:
        link, groups = f"/proc/self/fd/{program.fileno()}", [user] if user else []
        process = subprocess.Popen(
            [link, *words],
            stdout=sink,
            stderr=sink,
            user=user,
            group=user,
            extra_groups=groups,
            pass_fds=[program.fileno()],
        )
    try:
        yield log
    finally:
        process.terminate()
        process.wait(20)
        log.unlink()


def ended(log: Path) -> Pod:
    """The pod of a process that ended with this log, as the kubelet reports it."""
    words = log.read_text()[-2048:]
    status = {
        "name": "etcd",
        "restartCount": 3,
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"exitCode": 1, "message": words}},
    }
    return msgspec.convert({"metadata": {"name": "m"}, "status": {"containerStatuses": [status]}}, Pod)


def apply_fs_group(volume: Path, group: int) -> None:
    """As the kubelet does where the storage class supports it."""
    for path in (volume, *volume.rglob("*")):
        os.chown(path, -1, group)
        path.chmod(path.stat().st_mode | (0o2770 if path.is_dir() else 0o660))


@needs_root
def test_a_volume_that_is_not_its_own_is_named_as_the_cause_and_not_taken_for_lost_data(
    binaries: Path, volume: Path
) -> None:
    with etcd(binaries, volume, USER) as log:
        eventually(lambda: NO_RIGHTS in log.read_text() and "fatal" in log.read_text())
        facts = pod_facts(ended(log), now=datetime.now(UTC))
    assert facts.problem is not None
    assert facts.problem.reason == "PermissionDenied"
    assert NO_RIGHTS in facts.problem.message
    assert not facts.has_no_data
    assert not facts.has_broken_data


@needs_root
def test_what_root_wrote_is_read_by_another_user_after_fs_group_and_by_root_again(
    binaries: Path, volume: Path, channels: Channels
) -> None:
    for user in (0, USER, 0):
        if user:
            apply_fs_group(volume, user)
        address = free_address()
        with etcd(binaries, volume, user, address=address):
            client = KeyClient(channels, address)
            eventually(lambda client=client: client.has_quorum(deadline=1.0))  # type: ignore[misc]
            before = client.get(b"writers")
            client.put(b"writers", (before.value if before else b"") + b"x")
    assert before is not None
    assert before.value == b"xx"
