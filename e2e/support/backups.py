"""Backups of coreos.com that a test asks for."""

import base64
import json
from urllib.request import Request, urlopen

from e2e.support.space import Space
from e2e.support.waiting import LONG, answered

OF_ONE_CLUSTER = {"backupIntervalInSecond": 3600, "maxBackups": 5, "volumeSizeInMB": 100}
"""A `spec.backup` that takes the first backup by itself, and the others on request."""


def token_of(space: Space, name: str) -> str:
    """The token of a cluster's backup tool, as docs/backup.md describes."""
    encoded = space.kubectl("get", "secret", f"{name}-backup-tool", "-o", "jsonpath={.data.token}")
    return base64.b64decode(encoded).decode()


def back_up(space: Space, name: str) -> int:
    """Let a cluster's tool take a backup; its revision."""

    def taken() -> int:
        address = space.kubectl("get", "service", f"{name}-backup-tool", "-o", "jsonpath={.spec.clusterIP}")
        header = {"Authorization": f"Bearer {token_of(space, name)}"}
        with urlopen(Request(f"http://{address}:19999/v1/backupnow", headers=header), timeout=LONG) as reply:
            found = json.load(reply)
        assert found["failure"] is None, found
        return int(found["newest"]["revision"])

    return answered(taken, "a backup is taken")
