"""What is at, or beside, the place of a restored data directory; the programs here are scripts."""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from etcd_operator.archive.errors import RestoreError
from etcd_operator.archive.restorable import find
from etcd_operator.archive.restore import is_filled, restore
from unit.archive.restoring import COPY, MEMBER, Setting
from unit.archive.samples import snapshot


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    return Setting(tmp_path)


def filled(path: Path) -> None:
    path.mkdir()
    (path / "member").touch()


@pytest.mark.parametrize("fill", [filled, Path.touch, lambda path: path.symlink_to("missing/file")])
def test_what_exists_is_not_touched(setting: Setting, fill: Callable[[Path], None]) -> None:
    setting.backup()
    fill(setting.data_dir)
    before = setting.data_dir.lstat()
    with pytest.raises(RestoreError):
        setting.restore()
    assert setting.data_dir.lstat() == before
    assert list(setting.parent.iterdir()) == [setting.data_dir]


def test_an_empty_folder_is_replaced(setting: Setting) -> None:
    setting.backup()
    setting.data_dir.mkdir()
    setting.restore()
    assert is_filled(setting.data_dir)


def test_a_data_directory_that_appears_meanwhile(setting: Setting) -> None:
    setting.backup()
    setting.tool = setting.install(f"{COPY}; mkdir {setting.data_dir}; echo 1 > {setting.data_dir}/file")
    with pytest.raises(RestoreError, match="exists already"):
        setting.restore()
    assert [each.name for each in setting.data_dir.iterdir()] == ["file"]


def test_a_mount_point_cannot_be_replaced(setting: Setting) -> None:
    setting.backup()
    setting.data_dir = Path("/proc")
    with pytest.raises(RestoreError, match="is a mount point"):
        setting.restore()


def test_a_folder_that_is_missing(setting: Setting) -> None:
    setting.backup()
    setting.data_dir = setting.parent / "missing" / "data"
    with pytest.raises(RestoreError, match=r"cannot restore to .*missing/data: No such file"):
        setting.restore()


def test_what_a_killed_restore_left_is_removed(setting: Setting) -> None:
    setting.backup()
    left = setting.parent / ".data.restoring"
    (left / "data" / "member").mkdir(parents=True)
    (left / "snapshot.db").write_bytes(b"half")
    setting.restore()
    assert setting.database == snapshot()
    assert [each.name for each in setting.parent.iterdir()] == ["data"]


def test_two_at_once(setting: Setting) -> None:
    setting.backup()
    left = setting.parent / ".data.restoring"
    left.mkdir()
    (left / "snapshot.db").write_bytes(b"half")
    descriptor = os.open(left, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with pytest.raises(RestoreError, match="another process restores"):
        setting.restore()
    assert (left / "snapshot.db").read_bytes() == b"half"
    os.close(descriptor)


def test_the_folder_of_another_user(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    setting.backup()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(RestoreError, match="not made by a restore of this user"):
        setting.restore()


def test_a_full_disk(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    setting.backup()
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=1 << 20))
    with pytest.raises(RestoreError, match=r"needs 65 MiB in .* has 1 MiB free"):
        setting.restore()
    assert setting.has_nothing()


def test_only_the_owner_can_read_what_is_restored(setting: Setting) -> None:
    setting.backup()
    setting.tool = setting.install(f'stat -c %a "$(dirname "$3")" > {setting.path}/mode; {COPY}')
    (setting.parent / ".data.restoring").mkdir(mode=0o777)
    setting.restore()
    assert (setting.path / "mode").read_text() == "700\n"


def test_progress_of_both_steps(setting: Setting) -> None:
    setting.backup()
    seen: list[object] = []
    size = len(snapshot())
    setting.tool = setting.install(f"{COPY}; until [ -e {setting.path}/seen ]; do sleep 0.05; done")

    def on_progress(done: int) -> None:
        seen.append(done)
        if "restoring" in seen and done == size:
            (setting.path / "seen").touch()

    source, tool = find(setting.store, "one"), setting.tool
    restore(
        source, setting.data_dir, MEMBER, setting.keys, tool, on_stage=seen.append, on_progress=on_progress
    )
    assert seen[: seen.index("restoring")] == ["fetching", size]
    assert seen[-1] == size
