"""Makes every new folder in the given one writable by all, for as long as it runs.

Why it exists: the hostpath provisioner makes a volume's folder with mode 0750 and owner root, and
Kubernetes does not apply fsGroup to host paths, so a pod that does not run as root could not use its
volume. A folder is opened within 0.1 s; the pod that uses it needs longer than that to be scheduled and
started. A program of its own, without imports from the package, so that it outlives the `up` that started
it.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path

_PERIOD = 0.05


def open_folders(parent: Path) -> None:
    """Give mode 0777 to the folders in `parent` that do not have it."""
    with os.scandir(parent) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):
                is_folder = entry.is_dir(follow_symlinks=False)
                if is_folder and entry.stat(follow_symlinks=False).st_mode & 0o777 != 0o777:
                    Path(entry.path).chmod(0o777)


def main(parent: Path) -> None:
    """Watch `parent` until it is deleted."""
    seen = -1
    while parent.exists():
        changed = parent.stat().st_mtime_ns
        if changed != seen:
            open_folders(parent)
            seen = changed
        time.sleep(_PERIOD)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
