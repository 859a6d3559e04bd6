"""What a reader with keys accepts: only what somebody has stored who has them."""

from pathlib import Path

import pytest

from etcd_operator.archive.create import Options
from etcd_operator.archive.errors import NotEncrypted
from etcd_operator.archive.fetch import fetch
from etcd_operator.archive.keys import EncryptionKey, KeyRing
from etcd_operator.archive.manifest import SUFFIX
from etcd_operator.archive.restorable import find
from etcd_operator.archive.verify import verify
from unit.archive.samples import folder, snapshot, stored

KEY = EncryptionKey(bytes(range(32)))
KEYS = KeyRing([KEY])
NOT_ENCRYPTED = "one is not encrypted, although keys are given.*read it without --encryption-keys"


@pytest.mark.parametrize("options", [Options(), Options(compression="zstd")], ids=["plain", "compressed"])
def test_with_keys_nothing_is_accepted_that_was_stored_without(tmp_path: Path, options: Options) -> None:
    store = folder(tmp_path / "store")
    manifest = stored(store, "one", options=options)
    with pytest.raises(NotEncrypted, match=NOT_ENCRYPTED):
        verify(store, "one", KEYS)
    with pytest.raises(NotEncrypted, match=NOT_ENCRYPTED):
        fetch(store, "one", tmp_path / "fetched", KEYS)
    for sha256 in ("", manifest.sha256):
        with pytest.raises(NotEncrypted, match=NOT_ENCRYPTED):
            find(store, "one", sha256=sha256).save(tmp_path / f"saved{sha256}", KEYS)
    with pytest.raises(NotEncrypted, match=NOT_ENCRYPTED):
        find(store, "one").check(KEYS)
    assert find(store, "one").check(KeyRing()).revision == 6


def test_with_keys_no_snapshot_without_a_manifest_is_accepted(tmp_path: Path) -> None:
    """Who may write to the store can take the manifest away, and put other data in place of the object."""
    store = folder(tmp_path)
    stored(store, "one", options=Options(key=KEY))
    (tmp_path / f"one{SUFFIX}").unlink()
    (tmp_path / "one").write_bytes(snapshot())
    with pytest.raises(NotEncrypted, match="one has no manifest, although keys are given"):
        find(store, "one").check(KEYS)
    assert find(store, "one").check(KeyRing()).revision == 6
