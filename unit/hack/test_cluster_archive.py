import io
import json
import tarfile
from pathlib import Path

import pytest

from localcluster import archive
from localcluster.archive import Image


@pytest.fixture
def image(tmp_path: Path) -> Image:
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF program")
    return Image(
        name="quay.io/coreos/etcd:v9.9.9",
        files={"usr/local/bin/etcd": program},
        scripts={"bin/bash": "#!/bin/sh\n"},
        texts={"etc/passwd": "root:x:0:0::/:\n"},
        links={"bin/sh": "busybox"},
        folders={"tmp": 0o1777},
        config={"Cmd": ["etcd"]},
    )


def members(file: Path) -> dict[str, bytes]:
    with tarfile.open(file) as opened:
        return {each.name: content.read() for each in opened if (content := opened.extractfile(each))}


def test_the_same_content_gives_the_same_bytes(image: Image, tmp_path: Path) -> None:
    first = archive.write(image, tmp_path / "a.tar")
    (tmp_path / "program").touch()
    assert archive.write(image, tmp_path / "b.tar") == first
    assert (tmp_path / "a.tar").read_bytes() == (tmp_path / "b.tar").read_bytes()


def test_another_content_gives_another_digest(image: Image, tmp_path: Path) -> None:
    first = archive.write(image, tmp_path / "a.tar")
    (tmp_path / "program").write_bytes(b"\x7fELF another")
    assert archive.write(image, tmp_path / "a.tar") != first


def test_every_blob_is_named_by_its_digest_and_referenced(image: Image, tmp_path: Path) -> None:
    digest = archive.write(image, tmp_path / "a.tar")
    content = members(tmp_path / "a.tar")
    blobs = {name for name in content if name.startswith("blobs/")}
    assert blobs == {f"blobs/{archive.digest_of(content[name]).replace(':', '/')}" for name in blobs}
    manifest = json.loads(content[f"blobs/{digest.replace(':', '/')}"])
    used = {digest, manifest["config"]["digest"], *(layer["digest"] for layer in manifest["layers"])}
    assert blobs == {f"blobs/{each.replace(':', '/')}" for each in used}


def test_the_configuration_names_the_unpacked_layer(image: Image, tmp_path: Path) -> None:
    digest = archive.write(image, tmp_path / "a.tar")
    content = members(tmp_path / "a.tar")
    manifest = json.loads(content[f"blobs/{digest.replace(':', '/')}"])
    config = json.loads(content[f"blobs/{manifest['config']['digest'].replace(':', '/')}"])
    assert config["rootfs"]["diff_ids"] == [layer["digest"] for layer in manifest["layers"]]
    assert config["config"] == {"WorkingDir": "/", "Cmd": ["etcd"]}


def test_the_layer_holds_modes_links_and_parent_folders(image: Image, tmp_path: Path) -> None:
    digest = archive.write(image, tmp_path / "a.tar")
    content = members(tmp_path / "a.tar")
    layer = json.loads(content[f"blobs/{digest.replace(':', '/')}"])["layers"][0]
    with tarfile.open(fileobj=io.BytesIO(content[f"blobs/{layer['digest'].replace(':', '/')}"])) as opened:
        found = {each.name: each for each in opened}
    assert found["usr/local/bin/etcd"].mode == 0o755
    assert found["bin/bash"].mode == 0o755
    assert found["etc/passwd"].mode == 0o644
    assert (found["bin/sh"].linkname, found["bin/sh"].issym()) == ("busybox", True)
    assert (found["tmp"].mode, found["tmp"].isdir()) == (0o1777, True)
    assert found["usr/local"].isdir()
    assert all(each.uid == each.gid == each.mtime == 0 for each in found.values())


def test_names_and_digests_are_read_back(image: Image, tmp_path: Path) -> None:
    digest = archive.write(image, tmp_path / "a.tar")
    assert archive.read_names(tmp_path / "a.tar") == {"quay.io/coreos/etcd:v9.9.9": digest}


def test_an_archive_of_another_kind_has_no_names(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "docker.tar", "w") as opened:
        opened.addfile(tarfile.TarInfo("manifest.json"))
    assert archive.read_names(tmp_path / "docker.tar") == {}
