"""Regular backups of coreos.com, and the next one at its interval."""

import base64
import json
from urllib.request import Request, urlopen

from e2e.support.space import Space
from e2e.support.waiting import LONG, answered, wait_until

INTERVAL = 20
"""Seconds between two backups: time enough to write and lose what the last one does not have."""

OF_ONE_CLUSTER = {"backupIntervalInSecond": INTERVAL, "maxBackups": 5, "volumeSizeInMB": 100}
"""A `spec.backup` for `await_backup`."""


def back_up_often(space: Space, name: str) -> None:
    """Edit a cluster's `spec.backup` for `await_backup`."""
    patch = json.dumps({"spec": {"backup": {"backupIntervalInSecond": INTERVAL}}})
    space.kubectl("patch", f"etcdclusters.coreos.com/{name}", "--type=merge", "-p", patch)


def token_of(space: Space, name: str) -> str:
    """The token of a cluster's backup tool, as docs/backup.md describes."""
    encoded = space.kubectl("get", "secret", f"{name}-backup-tool", "-o", "jsonpath={.data.token}")
    return base64.b64decode(encoded).decode()


def await_backup(space: Space, name: str, least: int) -> int:
    """Wait until a cluster's tool stores another backup, of revision `least` or a later one; its revision.

    The following one comes `INTERVAL` seconds later.
    """

    def newest() -> int:
        address = space.kubectl("get", "service", f"{name}-backup-tool", "-o", "jsonpath={.spec.clusterIP}")
        header = {"Authorization": f"Bearer {token_of(space, name)}"}
        with urlopen(Request(f"http://{address}:19999/v1/status", headers=header), timeout=LONG) as reply:
            found = json.load(reply)["newest"]
        return int(found["revision"]) if found else 0

    before = answered(newest, "the backup tool answers")
    needed = max(before + 1, least)
    return wait_until(lambda: found if (found := newest()) >= needed else 0, "a backup is taken")
