"""Keys of backups: which files are keys, which one encrypts, and that none is ever shown."""

import base64
import hashlib
import os
from pathlib import Path

import pytest

from etcd_operator.archive.errors import BadKey, WrongKey
from etcd_operator.archive.keys import EncryptionKey, KeyRing

OLD, NEW = bytes(range(32)), bytes(range(100, 132))


def write(folder: Path, **keys: bytes) -> Path:
    for name, content in keys.items():
        (folder / name.replace("_", "-")).write_bytes(content)
    return folder


SECRET = b"\xfb\xff\xfe" * 10 + b"\xfb\xff"
"""Its URL-safe base64 is another one than the standard base64."""


@pytest.mark.parametrize(
    "content",
    [
        SECRET,
        base64.b64encode(SECRET),
        base64.b64encode(SECRET) + b"\n",
        base64.urlsafe_b64encode(SECRET) + b"\r\n",
    ],
)
def test_a_key_is_raw_or_base64(tmp_path: Path, content: bytes) -> None:
    ring = KeyRing.read(write(tmp_path, key=content) / "key")
    assert ring.newest == EncryptionKey(SECRET)


def test_the_id_is_the_begin_of_the_hash_of_the_key() -> None:
    assert EncryptionKey(OLD).id == hashlib.sha256(OLD).hexdigest()[:16]


@pytest.mark.parametrize(
    ("first", "last"),
    [("key-9", "key-10"), ("2025-12-31", "2026-01-01"), ("a", "b"), ("key", "key-2"), ("key-09", "key-9")],
)
def test_the_key_whose_name_comes_last_encrypts(tmp_path: Path, first: str, last: str) -> None:
    (tmp_path / last).write_bytes(NEW)
    (tmp_path / first).write_bytes(OLD)
    ring = KeyRing.read(tmp_path)
    assert ring.newest == EncryptionKey(NEW)
    assert ring.ids == (EncryptionKey(OLD).id, EncryptionKey(NEW).id)
    assert ring.find(EncryptionKey(OLD).id) == EncryptionKey(OLD)


def test_an_old_key_under_a_later_name_encrypts_again(tmp_path: Path) -> None:
    assert KeyRing.read(write(tmp_path, key_1=OLD, key_2=NEW, key_3=OLD)).newest == EncryptionKey(OLD)


def test_a_mounted_secret_is_read_through_its_links(tmp_path: Path) -> None:
    (tmp_path / "..2026_03_01").mkdir()
    (tmp_path / "..2026_03_01" / "key").write_bytes(NEW)
    (tmp_path / "..data").symlink_to("..2026_03_01")
    (tmp_path / "key").symlink_to("..data/key")
    assert KeyRing.read(tmp_path).ids == (EncryptionKey(NEW).id,)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        OLD[:31],
        OLD + b"\n",
        b"correct horse battery staple",
        b"correct horse battery staple, 32",
        OLD.hex().encode(),
        OLD.hex()[:32].encode(),
        base64.b64encode(OLD)[:-1],
        base64.b64encode(b"correct horse battery staple, 32"),
        base64.b64encode(OLD + OLD),
        base64.b64encode(OLD) * 1000,
        b"\xff" * 44,
    ],
)
def test_what_is_not_a_key_is_refused_without_showing_it(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(BadKey, match="openssl rand") as caught:
        KeyRing.read(write(tmp_path, key=content))
    if content:
        assert content.decode("latin-1").strip() not in str(caught.value)


def test_a_folder_without_keys_is_refused(tmp_path: Path) -> None:
    write(tmp_path, **{".hidden": OLD})
    with pytest.raises(BadKey, match="has no key"):
        KeyRing.read(tmp_path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadKey, match="missing: No such file"):
        KeyRing.read(tmp_path / "missing")


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "key")
    with pytest.raises(BadKey, match="is not a file"):
        KeyRing.read(tmp_path)


@pytest.mark.parametrize(
    ("ring", "given"),
    [
        (KeyRing(), "no key was given"),
        (KeyRing([EncryptionKey(NEW)]), f"the keys given are {EncryptionKey(NEW).id}"),
    ],
)
def test_an_unknown_key_is_named_beside_those_that_are_known(ring: KeyRing, given: str) -> None:
    with pytest.raises(WrongKey, match=f"key {EncryptionKey(OLD).id}, {given}"):
        ring.find(EncryptionKey(OLD).id)


def test_no_representation_shows_a_key() -> None:
    key = EncryptionKey(OLD)
    shown = f"{key} {key!r} {KeyRing([key])!r} {vars(KeyRing([key]))}"
    assert repr(OLD) not in shown
    assert OLD.hex() not in shown
