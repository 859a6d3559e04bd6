"""The images that a fresh node has, made here from static programs, and loading of images into nodes.

Tags are those that users know, and they are fixed, so that Kubernetes never tries to pull them. The etcd
images hold the three programs and no shell, like the upstream ones.

Promises: an archive is made once per content; an image that a node already has with the same digest is not
loaded.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from . import archive, tools
from .archive import Image
from .commands import run, succeeds
from .console import RefusalError, progress
from .paths import Cache

PAUSE = "registry.k8s.io/pause:3.10"
COREDNS = f"registry.k8s.io/coredns/coredns:v{tools.COREDNS_VERSION}"
BUSYBOX = "docker.io/library/busybox:1.36"
ETCD_SHELL = "localhost/etcd-shell:dev"
VERSITYGW = f"localhost/versitygw:{tools.VERSITYGW_VERSION}"
FAKE_GCS_SERVER = f"localhost/fake-gcs-server:{tools.FAKE_GCS_SERVER_VERSION}"

_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_USERS = "root:x:0:0:root:/root:/bin/sh\nnonroot:x:65532:65532:nonroot:/home/nonroot:/bin/sh\n"
_GROUPS = "root:x:0:\nnonroot:x:65532:\n"
_ACCOUNTS = {"etc/passwd": _USERS, "etc/group": _GROUPS}
_FOLDERS = {"tmp": 0o1777, "root": 0o700}


def etcd_image(version: str) -> str:
    """Return the name of the image of an etcd version."""
    return f"quay.io/coreos/etcd:v{version}"


def wanted(cache: Cache) -> tuple[Image, ...]:
    """Return the images that every node gets."""
    busybox = Path(_program("busybox"))
    etcdctl = cache.tool(f"etcd-{tools.CLUSTER_ETCD}", "etcdctl")
    shell = _shell_image(BUSYBOX, busybox, {})
    return (
        Image(
            name=PAUSE, files={"pause": Path(_program("catatonit"))}, config={"Entrypoint": ["/pause", "-P"]}
        ),
        Image(
            name=COREDNS,
            files={"coredns": cache.tool(tools.COREDNS, "coredns")},
            config={"Entrypoint": ["/coredns"], "Env": [_PATH]},
        ),
        shell,
        _shell_image(ETCD_SHELL, busybox, {"usr/local/bin/etcdctl": etcdctl}),
        *(_etcd(cache, version) for version in tools.ETCD_VERSIONS),
    )


def stores(cache: Cache) -> tuple[Image, ...]:
    """Return the images of the stores for backups, each with its program as the entry point."""
    return (
        _store(VERSITYGW, cache.tool(tools.VERSITYGW, "versitygw")),
        _store(FAKE_GCS_SERVER, cache.tool(tools.FAKE_GCS_SERVER, "fake-gcs-server")),
    )


def build(cache: Cache, images: Iterable[Image]) -> dict[str, Path]:
    """Return name -> archive of the images, made now where content changed."""
    archives = {}
    for image in images:
        short = image.name.rpartition("/")[2].replace(":", "-")
        file = cache.images / f"{short}.tar"
        stamp = file.with_suffix(".made-from")
        content = _content_key(image)
        if not (file.exists() and stamp.exists() and stamp.read_text() == content):
            archive.write(image, file)
            stamp.write_text(content)
            progress(f"image {image.name} made")
        archives[image.name] = file
    return archives


class ImageStore:
    """The images of one node's containerd."""

    def __init__(self, cache: Cache, socket: Path) -> None:
        program = cache.tool(tools.CONTAINERD, "ctr")
        self._ctr: list[str | Path] = [program, "--address", socket, "--namespace", "k8s.io"]

    def digests(self) -> dict[str, str]:
        """Return name -> digest of the images that are loaded."""
        rows = [line.split() for line in run([*self._ctr, "images", "list"]).splitlines()[1:]]
        return {row[0]: row[2] for row in rows if not row[0].startswith("sha256:")}

    def is_reachable(self) -> bool:
        """Return whether the node's containerd answers."""
        return succeeds([*self._ctr, "images", "list", "--quiet"])

    def load(self, file: Path) -> None:
        """Load an archive: OCI layout or docker-archive."""
        run([*self._ctr, "images", "import", file.resolve()], deadline=180)

    def ensure(self, archives: Iterable[Path]) -> int:
        """Load the archives whose images are missing or differ; return how many."""
        present = self.digests()
        missing = [file for file in archives if not _is_present(file, present)]
        with ThreadPoolExecutor(max_workers=2) as pool:
            list(pool.map(self.load, missing))
        return len(missing)


def _is_present(file: Path, present: dict[str, str]) -> bool:
    names = archive.read_names(file)
    return bool(names) and all(present.get(name) == digest for name, digest in names.items())


def _shell_image(name: str, busybox: Path, files: dict[str, Path]) -> Image:
    applets = [applet for applet in run([busybox, "--list"]).split() if applet != "busybox"]
    links = {f"bin/{applet}": "busybox" for applet in applets}
    script = '#!/bin/sh\nexec /bin/sh "$@"\n'  # busybox has no applet of that name
    return Image(
        name=name,
        files={"bin/busybox": busybox, **files},
        texts=_ACCOUNTS,
        scripts={} if "bash" in applets else {"bin/bash": script},
        links=links,
        folders=_FOLDERS,
        config={"Env": [_PATH], "Cmd": ["sh"]},
    )


def _etcd(cache: Cache, version: str) -> Image:
    programs = ("etcd", "etcdctl", "etcdutl")
    return Image(
        name=etcd_image(version),
        files={f"usr/local/bin/{each}": cache.tool(f"etcd-{version}", each) for each in programs},
        texts=_ACCOUNTS,
        folders=_FOLDERS | {"var/lib/etcd": 0o755, "var/etcd": 0o755},
        config={
            "Env": [_PATH],
            "Cmd": ["/usr/local/bin/etcd"],
            "ExposedPorts": {"2379/tcp": {}, "2380/tcp": {}},
        },
    )


def _store(name: str, program: Path) -> Image:
    path = f"usr/local/bin/{program.name}"
    return Image(
        name=name,
        files={path: program},
        texts=_ACCOUNTS,
        folders=_FOLDERS,
        config={"Env": [_PATH], "Entrypoint": [f"/{path}"]},
    )


def _content_key(image: Image) -> str:
    """Digest of the description and of the files' size and time (reading them would take seconds)."""
    files = {path: _signature(source) for path, source in image.files.items()}
    described = {
        key: dict(value) if isinstance(value, dict) else value for key, value in asdict(image).items()
    }
    return hashlib.sha256(json.dumps([described, files], default=str, sort_keys=True).encode()).hexdigest()


def _signature(source: Path) -> list[int]:
    status = source.stat()
    return [status.st_size, status.st_mtime_ns]


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise RefusalError(f"{name} is not installed; run: hack/cluster setup")
    return found
