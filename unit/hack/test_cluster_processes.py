import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from localcluster.cgroups import Cgroups, Hierarchy, hierarchies
from localcluster.processes import Daemon, Identity, ProcessTable, launch_script, parse_stat, read_record

STAT = "4242 (a (b) c) S 1 4242 4242 0 -1 4194560 100 0 0 0 1 2 0 0 20 0 1 0 987654 0 0"


@pytest.fixture
def table(tmp_path: Path) -> Iterator[ProcessTable]:
    folder = tmp_path / "cgroup" / "pids"
    cgroups = Cgroups("eotest", (Hierarchy(root=folder, is_v2=False),))
    (folder / "eotest" / "daemons-hub").mkdir(parents=True)
    table = ProcessTable(records=tmp_path / "run", logs=tmp_path / "logs", cgroups=cgroups)
    yield table
    table.stop(table.names())


@pytest.fixture
def sleeper() -> Daemon:
    return Daemon(name="sleeper", command=("sleep", "60"))


def test_the_start_time_is_read_behind_a_command_with_brackets() -> None:
    assert parse_stat(STAT) == (4242, "S", 987654)


def test_a_started_daemon_is_found_and_stopped(table: ProcessTable, sleeper: Daemon) -> None:
    assert table.ensure(sleeper)
    found = table.find("sleeper")
    assert found is not None
    assert Path(f"/proc/{found.pid}").exists()
    table.stop(["sleeper"])
    assert table.find("sleeper") is None


def test_a_daemon_that_runs_as_wanted_is_left_alone(table: ProcessTable, sleeper: Daemon) -> None:
    table.ensure(sleeper)
    before = table.find("sleeper")
    assert not table.ensure(sleeper)
    assert table.find("sleeper") == before


@pytest.mark.parametrize("change", [{"command": ("sleep", "61")}, {"reads": "another configuration"}])
def test_a_daemon_with_other_settings_is_started_again(
    table: ProcessTable, sleeper: Daemon, change: dict[str, str]
) -> None:
    table.ensure(sleeper)
    before = table.find("sleeper")
    assert table.ensure(replace(sleeper, **change))  # type: ignore[arg-type]
    assert table.find("sleeper") != before


def test_a_process_that_took_over_a_recorded_pid_is_never_signalled() -> None:
    other = subprocess.Popen(["sleep", "60"])
    try:
        _, _, started = parse_stat(Path(f"/proc/{other.pid}/stat").read_text())
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        ours = Identity(boot=boot, pid=other.pid, started=started - 1, fingerprint="")
        ours.signal(signal.SIGKILL)
        assert not ours.is_alive
        assert other.poll() is None
        before_the_reboot = Identity(boot="another", pid=other.pid, started=started, fingerprint="")
        before_the_reboot.signal(signal.SIGKILL)
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_the_cgroup_and_the_record_come_before_the_program(tmp_path: Path, sleeper: Daemon) -> None:
    script = launch_script(
        record=tmp_path / "r", log=tmp_path / "l", procs_file=tmp_path / "cgroup.procs", daemon=sleeper
    )
    assert script.index("cgroup.procs") < script.index("boot_id") < script.index("exec sleep 60")


def test_a_launch_that_cannot_join_its_cgroup_does_not_become_the_program(
    tmp_path: Path, sleeper: Daemon
) -> None:
    script = launch_script(
        record=tmp_path / "r",
        log=tmp_path / "l",
        procs_file=tmp_path / "none" / "cgroup.procs",
        daemon=sleeper,
    )
    assert subprocess.run(["sh", "-c", script], check=False, timeout=10).returncode != 0
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("text", ["", "boot\n", "boot\nnonsense\nfingerprint\n", f"boot\n{STAT}\n"])
def test_a_record_that_was_cut_short_counts_as_none(tmp_path: Path, text: str) -> None:
    record = tmp_path / "x.process"
    record.write_text(text)
    assert read_record(record) is None


def test_a_daemon_enters_the_namespaces_it_names() -> None:
    holder = Identity(boot="b", pid=7, started=1, fingerprint="")
    daemon = Daemon(name="x", command=("x", "--flag"), netns="eo-hub", mounts_of=holder)
    assert daemon.argv() == [
        "nsenter",
        "--net=/run/netns/eo-hub",
        "--mount=/proc/7/ns/mnt",
        "--",
        "x",
        "--flag",
    ]


def test_all_kinds_of_cgroup_hierarchies_are_found() -> None:
    text = (
        "30 25 0:26 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
        "31 25 0:27 / /sys/fs/cgroup/pids rw shared:4 - cgroup cgroup rw,pids\n"
        "32 25 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
        "33 25 0:29 / /tmp rw - tmpfs tmpfs rw\n"
    )
    found = hierarchies(text)
    assert [(each.root.name, each.is_v2) for each in found] == [
        ("cpu,cpuacct", False),
        ("pids", False),
        ("unified", True),
    ]
    assert Cgroups("eox", found).procs_file("hub") == Path("/sys/fs/cgroup/pids/eox/daemons-hub/cgroup.procs")
    assert Cgroups("eox", found[2:]).procs_file("hub").is_relative_to("/sys/fs/cgroup/unified")


def test_empty_cpusets_are_filled_from_the_parent(tmp_path: Path) -> None:
    root = tmp_path / "cpuset"
    for folder in ("", "eox", "eox/node-1", "eox/daemons-node-1"):
        (root / folder).mkdir()
        for file in ("cpuset.cpus", "cpuset.mems"):
            (root / folder / file).write_text("0-3\n" if not folder else "\n")
    Cgroups("eox", (Hierarchy(root=root, is_v2=False),)).create("node-1")
    assert (root / "eox" / "node-1" / "cpuset.cpus").read_text() == "0-3\n"


def test_removing_a_cgroup_kills_what_its_files_list(tmp_path: Path) -> None:
    target = subprocess.Popen(["sleep", "60"])
    leaf = tmp_path / "pids" / "eox" / "node-1" / "pod"
    leaf.mkdir(parents=True)
    procs = leaf / "cgroup.procs"
    procs.write_text(f"{target.pid}\n")
    cgroups = Cgroups("eox", (Hierarchy(root=tmp_path / "pids", is_v2=False),))
    assert cgroups.pids() == {target.pid}
    assert not cgroups._is_removed("")
    assert target.wait(timeout=60) == -signal.SIGKILL
    procs.unlink()  # the kernel's files vanish with the folder
    cgroups.remove()
    cgroups.remove()
    assert not (tmp_path / "pids" / "eox").exists()
    assert os.path.lexists(tmp_path / "pids")
