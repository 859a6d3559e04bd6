"""A backup of a cluster, stored in real stores inside of the Kubernetes, and restored on trial."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.support import stores
from e2e.support.clusters import ephemeral
from e2e.support.shell import NAME as SHELL
from e2e.support.shell import start_shell
from e2e.support.space import Space
from e2e.support.stores import GCS, PLANTED, S3, DeployedStore, Kind
from localcluster import tools
from localcluster.paths import Cache

ETCD = Cache.of_user().tools / f"etcd-{tools.CLUSTER_ETCD}"
DAMAGED = 3  # exit code
KEY = "v1/backup.db"


def run(store: DeployedStore, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line of the operator, on this machine."""
    command = [sys.executable, "-m", "etcd_operator", *arguments]
    environment = {**os.environ, **store.environment}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.long
@pytest.mark.unrestricted
@pytest.mark.parametrize("kind", [S3, GCS], ids=lambda kind: kind.name)
def test_a_backup_is_stored_restored_on_trial_and_found_damaged(space: Space, kind: Kind) -> None:
    space.require_local("the images of the stores are made for local clusters only")
    store = stores.deploy(space, kind)
    start_shell(space)
    assert store.bucket.names() == []
    space.kubectl("exec", SHELL, "--", "wget", "-q", "-O", "-", f"{store.endpoint}{kind.health}")

    cluster = space.created(ephemeral(size=1))
    endpoint = f"http://{space.addresses(cluster)[0]}:2379"
    url = store.local_url(KEY)
    stored = run(store, "backup", "--endpoints", endpoint, "--to", url)
    assert stored.returncode == 0, stored.stderr
    assert store.bucket.names() == [KEY, f"{KEY}.manifest.json"]
    assert not any(planted in stored.stdout + stored.stderr for planted in PLANTED)

    verified = run(store, "verify", url, "--restore", "--etcd-bin", str(ETCD))
    assert verified.returncode == 0, verified.stderr
    damage(store.file(KEY))
    assert run(store, "verify", url).returncode == DAMAGED


def damage(file: Path) -> None:
    """Flip one bit in the middle of a file."""
    with file.open("r+b") as stream:
        stream.seek(file.stat().st_size // 2)
        (byte,) = stream.read(1)
        stream.seek(-1, os.SEEK_CUR)
        stream.write(bytes([byte ^ 1]))
