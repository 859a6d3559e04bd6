"""The flags that members are started with, held against every etcd there is."""

import re
import subprocess
from pathlib import Path

from etcd_operator.controllers.etcd_cluster.manifests.options import etcd_options

RENDERED = etcd_options(name="m", host="h", data_dir="/d", initial_cluster={"m": "h"}, state="new", token="t")


def test_every_flag_is_known_to_each_version(binaries: Path) -> None:
    """An ephemeral member's flags stay as they are through all upgrades: only its image can change."""
    done = subprocess.run(
        [binaries / "etcd", "--help"], capture_output=True, text=True, timeout=30, check=False
    )
    known = set(re.findall(r"^ +--([a-z-]+)", done.stdout + done.stderr, re.MULTILINE))

    assert "max-wals" in known
    assert set(RENDERED) <= known
