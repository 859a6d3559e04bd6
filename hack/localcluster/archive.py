"""Writes container images from files, without an engine or a registry.

An image archive here is an OCI image layout in a tar: `index.json` names the image, and blobs are named by
their SHA-256. Promises: the same content gives the same bytes, hence the same digest; `index.json` comes
first, so that the digest of a large archive is read at once. containerd, podman and docker (25 and later)
load it.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_LAYER = "application/vnd.oci.image.layer.v1.tar"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_INDEX = "application/vnd.oci.image.index.v1+json"
_NAME = "io.containerd.image.name"


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """What an image holds.

    `files` maps a path in the image to a file of this machine (mode 0755), `scripts` and `texts` to content
    (modes 0755 and 0644), `links` to a link's target; `folders` maps a path to its mode.
    """

    name: str
    files: Mapping[str, Path] = field(default_factory=dict)
    scripts: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    folders: Mapping[str, int] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)


def write(image: Image, target: Path) -> str:
    """Write the archive and return the image's digest (`sha256:...`)."""
    target.parent.mkdir(parents=True, exist_ok=True)
    layer_file = target.with_suffix(".layer")
    layer_digest = _write_layer(image, layer_file)
    config = _json(
        {
            "architecture": architecture(),
            "os": "linux",
            "created": "1970-01-01T00:00:00Z",
            "config": {"WorkingDir": "/", **image.config},
            "rootfs": {"type": "layers", "diff_ids": [layer_digest]},
        }
    )
    layer = {"mediaType": _LAYER, "digest": layer_digest, "size": layer_file.stat().st_size}
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": {"mediaType": _CONFIG, "digest": digest_of(config), "size": len(config)},
            "layers": [layer],
        }
    )
    reference = {"mediaType": _MANIFEST, "digest": digest_of(manifest), "size": len(manifest)}
    named = reference | {"annotations": {_NAME: image.name}}
    index = _json({"schemaVersion": 2, "mediaType": _INDEX, "manifests": [named]})
    new = target.with_suffix(".new")
    with tarfile.open(new, "w", format=tarfile.PAX_FORMAT) as archive:
        _add_bytes(archive, "index.json", index)
        _add_bytes(archive, "oci-layout", _json({"imageLayoutVersion": "1.0.0"}))
        _add_bytes(archive, _blob(digest_of(config)), config)
        _add_bytes(archive, _blob(digest_of(manifest)), manifest)
        _add_file(archive, _blob(layer_digest), layer_file, mode=0o644)
    layer_file.unlink()
    new.replace(target)
    return digest_of(manifest)


def read_names(archive: Path) -> dict[str, str]:
    """Return name -> digest of the images in an archive that `write` made; empty for other kinds."""
    with tarfile.open(archive) as opened:
        first = opened.next()
        content = opened.extractfile(first) if first is not None and first.name == "index.json" else None
        if content is None:
            return {}
        manifests = json.load(content)["manifests"]
    return {each["annotations"][_NAME]: each["digest"] for each in manifests}


def architecture() -> str:
    """Return this machine's architecture as images and Go name it."""
    machine = platform.machine()
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


def digest_of(data: bytes) -> str:
    """Return the digest of some bytes as images name it."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _write_layer(image: Image, target: Path) -> str:
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as layer:
        for folder, mode in sorted(_all_folders(image).items()):
            member = _member(folder, mode=mode)
            member.type = tarfile.DIRTYPE
            layer.addfile(member)
        for path, source in sorted(image.files.items()):
            _add_file(layer, path, source, mode=0o755)
        for path, text in sorted(image.scripts.items()):
            _add_bytes(layer, path, text.encode(), mode=0o755)
        for path, text in sorted(image.texts.items()):
            _add_bytes(layer, path, text.encode())
        for path, destination in sorted(image.links.items()):
            member = _member(path, mode=0o777)
            member.type, member.linkname = tarfile.SYMTYPE, destination
            layer.addfile(member)
    with target.open("rb") as written:
        return f"sha256:{hashlib.file_digest(written, 'sha256').hexdigest()}"


def _all_folders(image: Image) -> dict[str, int]:
    paths = [*image.files, *image.scripts, *image.texts, *image.links, *image.folders]
    parents = {str(parent) for path in paths for parent in Path(path).parents if str(parent) != "."}
    return dict.fromkeys(parents, 0o755) | dict(image.folders)


def _member(name: str, *, mode: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.mode = mode
    return member


def _add_file(archive: tarfile.TarFile, name: str, source: Path, *, mode: int) -> None:
    member = _member(name, mode=mode)
    member.size = source.stat().st_size
    with source.open("rb") as content:
        archive.addfile(member, content)


def _add_bytes(archive: tarfile.TarFile, name: str, data: bytes, *, mode: int = 0o644) -> None:
    member = _member(name, mode=mode)
    member.size = len(data)
    archive.addfile(member, io.BytesIO(data))


def _blob(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
