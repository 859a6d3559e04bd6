import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace
from typing import cast

import pytest

from localcluster import cli, faults, images, mounts, operatorimage, requirements, tools, volume_opener
from localcluster.archive import Image
from localcluster.commands import CommandError, run, succeeds, wait_for
from localcluster.console import RefusalError
from localcluster.instance import Instance
from localcluster.paths import GO_MODULES, Cache, State

pytestmark = pytest.mark.usefixtures("own_folders")


def test_a_failing_program_is_named_with_its_last_line() -> None:
    with pytest.raises(CommandError, match=r"^sh -c .* failed: no luck$"):
        run(["sh", "-c", "echo first; echo no luck >&2; exit 3"])


def test_a_program_that_hangs_is_ended() -> None:
    with pytest.raises(CommandError, match="did not end within"):
        run(["sleep", "60"], deadline=0.1)
    assert not succeeds(["sleep", "60"], deadline=0.1)


def test_a_missing_program_reports_how_to_get_it() -> None:
    with pytest.raises(CommandError, match="hack/cluster setup"):
        run(["no-such-program-here"])


def test_waiting_ends_with_a_hint() -> None:
    with pytest.raises(RefusalError, match="the moon did not happen within 0 s; see above"):
        wait_for("the moon", lambda: False, deadline=0.1, hint="see above")


def test_folders_follow_the_xdg_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert State.of_instance("dev").root == tmp_path / "state" / "etcd-operator-dev" / "dev"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    assert Cache.of_user().root == Path.home() / ".cache" / "etcd-operator-dev"


def test_a_second_build_waits_for_the_first_and_reports_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cache, entered = Cache(tmp_path), Event()

    def second() -> None:
        with cache.locked("programs"):
            entered.set()

    thread = Thread(target=second)
    with cache.locked("programs"):
        thread.start()
        wait_for("a waiting build", lambda: "waiting" in capsys.readouterr().err, deadline=10)
        assert not entered.is_set()
    thread.join(timeout=60)
    assert entered.is_set()


def test_a_cluster_that_is_not_up_is_one_clear_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["kubeconfig", "--name", "e2e"]) == 1
    assert capsys.readouterr().err == "hack/cluster: cluster e2e is not up; run: hack/cluster up --name e2e\n"
    assert cli.main(["status"]) == 1
    assert capsys.readouterr().out == "cluster dev: down\n"


def test_an_explicit_kubeconfig_is_printed_and_never_taken_down(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert cli.main(["--kubeconfig", str(tmp_path / "k"), "kubeconfig"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'k'}\n"
    assert cli.main(["down", "--kubeconfig", str(tmp_path / "k")]) == 0
    assert cli.main(["up", "--kubeconfig", str(tmp_path / "k")]) == 1
    assert "there is no kubeconfig" in capsys.readouterr().err


def test_the_kubeconfig_variable_is_not_taken_silently(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBECONFIG", "/etc/hostname")
    assert cli.main(["kubeconfig"]) == 1
    assert "is not up" in capsys.readouterr().err


def test_the_cluster_name_comes_from_the_environment_unless_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ETCD_OPERATOR_CLUSTER", "e2e")
    assert cli.parser().parse_args(["status"]).name == "e2e"
    assert cli.parser().parse_args(["--name", "a", "status"]).name == "a"
    for arguments in (
        ["status", "--name", "b"],
        ["fault", "--name", "b", "node-cut", "n"],
        ["fault", "node-cut", "n", "--name", "b"],
    ):
        assert cli.parser().parse_args(arguments).name == "b"


@pytest.mark.parametrize(
    "arguments", [["--name", "../x", "down"], ["up", "--nodes", "0"], ["up", "--nodes", "x"]]
)
def test_wrong_usage_ends_with_status_two(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.parser().parse_args(arguments)
    assert "usage:" in capsys.readouterr().err


def test_missing_programs_are_named_by_their_packages() -> None:
    with pytest.raises(RefusalError, match=r"missing: alpha, beta; run: hack/cluster setup"):
        requirements.check_programs({"no-such-b": "beta", "no-such-a": "alpha", "sh": "dash"})


def test_the_go_that_is_needed_is_the_newest_that_a_module_asks_for() -> None:
    assert (1, 26, 0) <= requirements.needed_go() < (2, 0, 0)


def test_every_pinned_version_agrees_with_its_go_module() -> None:
    pins = {
        "kubernetes": f"k8s.io/kubernetes v{tools.KUBERNETES_VERSION}",
        "containerd": f"github.com/containerd/containerd/v2 v{tools.CONTAINERD_VERSION}",
        "coredns": f"github.com/coredns/coredns v{tools.COREDNS_VERSION}",
        "versitygw": f"github.com/versity/versitygw v{tools.VERSITYGW_VERSION}",
        "fake-gcs-server": f"github.com/fsouza/fake-gcs-server v{tools.FAKE_GCS_SERVER_VERSION}",
    } | {f"etcd-{version}": f"go.etcd.io/etcd/server/v3 v{version}" for version in tools.ETCD_VERSIONS}
    all_tools = (*tools.TOOLS, *tools.STORES)
    assert {tool.module for tool in all_tools} == set(pins) == {path.name for path in GO_MODULES.iterdir()}
    for tool in all_tools:
        assert pins[tool.module] in (tool.source / "go.mod").read_text()
        assert (tool.source / "go.sum").stat().st_size > 0


def test_a_tool_counts_as_built_only_from_the_present_sources(tmp_path: Path) -> None:
    cache, tool = Cache(tmp_path), tools.TOOLS[0]
    assert not tools.is_built(cache, tool)
    (cache.tools / tool.folder).mkdir(parents=True)
    (cache.tools / tool.folder / ".built-from").write_text(tool.stamp())
    assert tools.is_built(cache, tool)
    (cache.tools / tool.folder / ".built-from").write_text("older")
    assert not tools.is_built(cache, tool)


@pytest.fixture
def go(tmp_path: Path) -> requirements.Go:
    """A stand-in for the toolchain that does what its first argument names."""
    program = tmp_path / "go"
    program.write_text(
        "#!/bin/sh\ncase $1 in\n"
        "list) echo one; echo two; echo go: downloading x >&2;;\n"
        "build) echo no rule >&2; exit 1;;\n"
        "hang) sleep 60;;\nesac\n"
    )
    program.chmod(0o755)
    return requirements.Go(program, (1, 99, 0))


def test_a_build_reports_progress_also_while_go_is_silent(
    go: requirements.Go, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tools, "_PROGRESS_SECONDS", 0.05)
    monkeypatch.setattr(tools, "_SILENT_SECONDS", 0.2)
    with pytest.raises(CommandError, match="go hang failed"):
        tools._go(go, tools.TOOLS[0], ["hang"], "kubernetes: compiled")
    assert capsys.readouterr().err.count("kubernetes: compiled: 0") >= 2


def test_a_slow_build_is_not_ended_while_it_makes_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "_SILENT_SECONDS", 0.0)
    packages: list[str] = []

    class Slow:
        def wait(self, timeout: float) -> int:
            if len(packages) == 3:
                return 0
            packages.append("compiled")
            raise subprocess.TimeoutExpired("go", timeout)

    assert tools._await_end(cast("subprocess.Popen[str]", Slow()), packages, "kubernetes") == 0


def test_what_go_answers_is_kept_apart_from_what_it_complains(go: requirements.Go) -> None:
    assert tools._go(go, tools.TOOLS[0], ["list"], "t") == "one\ntwo\n"
    with pytest.raises(CommandError, match="t: go build failed: no rule"):
        tools._go(go, tools.TOOLS[0], ["build"], "t")


def test_an_image_is_made_again_only_when_its_content_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "program"
    program.write_text("one")
    wanted = [Image(name="localhost/x/thing:1", files={"thing": program})]
    cache = Cache(tmp_path)
    made = images.build(cache, wanted)
    assert made == {"localhost/x/thing:1": cache.images / "thing-1.tar"}
    images.build(cache, wanted)
    assert capsys.readouterr().err.count("made") == 1
    program.write_text("another")
    images.build(cache, wanted)
    assert capsys.readouterr().err.count("made") == 1


def test_running_tasks_are_read_from_the_list_of_containerd() -> None:
    table = "TASK    PID    STATUS\nabc     11     RUNNING\ndef     12     STOPPED\nghi     13     PAUSED\n"
    assert faults.running_tasks(table) == {"abc": 11, "ghi": 13}


def test_a_container_is_found_while_containers_of_other_pods_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The pod has a container that ended and one that runs; only its own containers are queried."""
    answers = {
        "containers": "old\nnew\n",
        "tasks": "TASK PID STATUS\nold 1 STOPPED\nnew 2 RUNNING\nother 3 RUNNING\n",
    }
    queries: list[str] = []

    def answer(_: object, __: object, *arguments: str) -> str:
        queries.extend(word for word in arguments if word.startswith("labels."))
        assert arguments[1] == "list", "a container of another pod may be gone before it is queried"
        return answers[arguments[0]]

    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(faults, "_ctr", answer)
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append((pid, number)))
    one_node = cast("Instance", SimpleNamespace(nodes=lambda: ["node-1"]))
    faults.kill(one_node, "ns/pod-0", "etcd")
    assert sent == [(2, signal.SIGKILL)]
    namespace, pod, container = queries[0].split(",")
    assert namespace == 'labels."io.kubernetes.pod.namespace"==ns'
    assert pod == 'labels."io.kubernetes.pod.name"==pod-0'
    assert container == 'labels."io.kubernetes.container.name"==etcd'


def test_a_pod_is_named_with_its_namespace() -> None:
    assert faults.split_pod("ns/pod-0") == ("ns", "pod-0")
    with pytest.raises(RefusalError, match="write NAMESPACE/POD"):
        faults.split_pod("pod-0")


def test_mount_points_with_blanks_are_read_as_they_are() -> None:
    text = "36 35 98:0 / /mnt/a\\040b rw,noatime - ext4 /dev/root rw\n37 35 0:4 / /proc rw - proc proc rw\n"
    assert mounts.mount_points(text) == {"/mnt/a b", "/proc"}


def test_fresh_volume_folders_are_opened_and_files_left_alone(tmp_path: Path) -> None:
    (tmp_path / "volume").mkdir(mode=0o750)
    (tmp_path / "file").touch(mode=0o600)
    (tmp_path / "link").symlink_to(tmp_path)
    before = tmp_path.stat().st_mode
    volume_opener.open_folders(tmp_path)
    assert (tmp_path / "volume").stat().st_mode & 0o777 == 0o777
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600
    assert tmp_path.stat().st_mode == before


def test_the_volume_opener_ends_with_the_folder(tmp_path: Path) -> None:
    program = Path(volume_opener.__file__)
    assert run([sys.executable, "-I", program, tmp_path / "missing"], deadline=10) == ""


def test_pip_settings_come_from_files_and_the_environment_wins(tmp_path: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    first.write_text("[global]\nindex-url = https://one/simple\ntrusted-host = one\n")
    second.write_text("[global]\nindex-url = https://two/simple\n[install]\nno-index = true\n")
    settings = operatorimage.pip_settings({"PIP_TIMEOUT": "9"}, [first, second, tmp_path / "absent"])
    assert settings == {"index-url": "https://two/simple", "trusted-host": "one", "timeout": "9"}


def test_the_pip_conf_of_the_build_points_to_the_mounted_bundle() -> None:
    text = operatorimage.pip_conf({"timeout": "9"}, has_ca=True)
    assert text == "[global]\ntimeout = 9\ncert = /run/ca.crt\n"
    assert "cert" not in operatorimage.pip_conf({}, has_ca=False)


def test_a_build_without_a_dockerfile_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RefusalError, match="no Dockerfile"):
        operatorimage.build(Cache(tmp_path), tag="x:1", base=None, context=tmp_path)
