"""How the workflows choose a Kubernetes, and what they do in kind: against stand-ins for its programs."""

import argparse
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from localcluster.commands import CommandError
from localcluster.console import RefusalError
from localcluster.paths import REPOSITORY
from workflow import checks, deployment, kind, options, suite
from workflow.kind import KindKubernetes
from workflow.kubernetes import Kubernetes
from workflow.local import LocalKubernetes

NODES = """{"items": [{"spec": {"podCIDR": "10.244.0.0/24"}, "status": {"addresses":
[{"type": "InternalIP", "address": "172.18.0.2"}, {"type": "Hostname", "address": "dev-control-plane"}]}}]}"""
IMAGE = "localhost/etcd-operator:0.1.0"
ID = "0123456789abcdef"


class Programs:
    """Stand-ins for docker, kind, kubectl and ip, which log their calls."""

    def __init__(self, folder: Path, *, clusters: str = "") -> None:
        self.folder = folder
        self._log = folder / "log"
        self._log.touch()
        answers = {
            "docker": f"case $1 in image) echo sha256:{ID}fff;; build) cat > {folder}/stdin;; esac",
            "kind": f'[ "$1" = get ] && echo "{clusters}"',
            "kubectl": f"cat <<'END'\n{NODES}\nEND",
            "ip": "",
            "etcdctl": "",
        }
        for name, answer in answers.items():
            program = folder / name
            program.write_text(f'#!/bin/sh\necho {name} "$@" >> {self._log}\n{answer}\nexit 0\n')
            program.chmod(0o755)

    def calls(self, *names: str) -> list[str]:
        """The calls of the named programs, in order."""
        lines = self._log.read_text().splitlines()
        return [line for line in lines if line.split()[0] in names]


@pytest.fixture
def path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("ETCD_OPERATOR_CLUSTER", raising=False)
    return folder


def chosen(*arguments: str) -> argparse.Namespace:
    return checks._parser().parse_args(arguments)


def test_ci_runs_all_checks_and_a_person_the_quick_ones() -> None:
    ci = (REPOSITORY / ".ci" / "run").read_text().splitlines()
    assert ci == ["#!/usr/bin/env bash", 'exec "$(dirname "$0")/../hack/test" --all']
    assert checks.Run(chosen("--all"))._wanted == suite.ALL
    assert checks.Run(chosen())._wanted == suite.QUICK
    assert checks.Run(chosen("unit", "e2e"))._wanted == ["unit", "e2e"]


def test_all_checks_and_some_of_them_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["hack/test", "--all", "lint"])
    with pytest.raises(SystemExit):
        checks.main()
    assert "either --all or the names of checks" in capsys.readouterr().err


def test_a_kind_cluster_is_created_once_with_routes_and_images_for_the_tests(path: Path) -> None:
    programs = Programs(path)
    made = options.prepared(chosen("--provider", "kind"))
    where = f"--name=dev --kubeconfig={made.kubeconfig}"
    assert programs.calls("kind") == [
        "kind get clusters",
        f"kind create cluster --wait=120s {where}",
        "kind load docker-image --name=dev localhost/etcd-shell:dev",
    ]
    assert programs.calls("ip") == ["ip route replace 10.244.0.0/24 via 172.18.0.2"]
    assert programs.calls("docker") == ["docker build --tag=localhost/etcd-shell:dev -"]
    assert "COPY --from=etcd /usr/local/bin/etcdctl" in (path / "stdin").read_text()
    assert suite.variables("e2e", made)["ETCD_OPERATOR_KUBECONFIG"] == str(made.kubeconfig)


def test_a_kind_cluster_that_exists_is_used_again(path: Path) -> None:
    programs = Programs(path, clusters="other dev")
    options.prepared(chosen("--provider", "kind"))
    assert programs.calls("kind")[1].startswith("kind export kubeconfig --name=dev --kubeconfig=")


def test_the_operators_image_is_built_by_docker_and_loaded_into_kind(path: Path, tmp_path: Path) -> None:
    programs = Programs(path)
    made = KindKubernetes(kubeconfig=tmp_path / "config", tools=path, name="mine")
    assert made.load_operator(IMAGE) == ID
    assert programs.calls("docker")[0].startswith(f"docker build --tag={IMAGE} /")
    assert programs.calls("kind") == [f"kind load docker-image --name=mine {IMAGE}"]
    made.remove()
    assert programs.calls("ip") == ["ip route del 10.244.0.0/24"]
    assert programs.calls("kind")[-1] == "kind delete cluster --name=mine"


def test_without_kind_one_line_names_what_is_missing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Programs(path)
    (path / "kind").unlink()
    (path / "docker").unlink()
    monkeypatch.setenv("PATH", str(path))
    with pytest.raises(RefusalError, match=r"^--provider kind needs docker, kind on the PATH$"):
        kind.prepared("dev")


def test_a_kind_that_fails_is_named(path: Path) -> None:
    Programs(path)
    (path / "kind").write_text("#!/bin/sh\necho cannot connect to the Docker daemon >&2; exit 1\n")
    with pytest.raises(CommandError, match="kind get clusters failed: cannot connect to the Docker daemon"):
        kind.prepared("dev")


def test_an_existing_kubernetes_needs_an_image_and_no_provider() -> None:
    with pytest.raises(RefusalError, match="--kubeconfig needs --image"):
        options.prepared(chosen("--kubeconfig", "k"))
    with pytest.raises(RefusalError, match="either --kubeconfig or --provider kind"):
        options.prepared(chosen("--kubeconfig", "k", "--image", "i", "--provider", "kind"))


def test_tests_may_break_the_local_kubernetes_only(tmp_path: Path) -> None:
    local = LocalKubernetes(kubeconfig=tmp_path / "config", tools=tmp_path, name="mine")
    theirs = Kubernetes(kubeconfig=tmp_path / "config", tools=tmp_path)
    assert suite.variables("e2e", local)["ETCD_OPERATOR_CLUSTER"] == "mine"
    assert "ETCD_OPERATOR_KUBECONFIG" not in suite.variables("e2e", local)
    assert "ETCD_OPERATOR_CLUSTER" not in suite.variables("unit", local)
    for kubernetes, environment in ((local, "unit"), (theirs, "unit"), (theirs, "e2e")):
        found = suite.variables(environment, kubernetes)
        assert found["ETCD_OPERATOR_KUBECONFIG"] == str(tmp_path / "config")


def test_all_tests_run_in_one_virtual_environment_which_is_made_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    monkeypatch.setattr(suite, "_tox", lambda name: ["sh", "-c", f'echo "$@" >> {log}', "tox", name])
    suite._make.cache_clear()
    tests = ("unit", "coverage", "faults", "quick", "e2e", "exclusive")
    assert all(suite.tox(name, os.environ) for name in tests)
    suite._make.cache_clear()
    assert log.read_text().splitlines() == [
        "unit --notest",
        *(f"{name} --skip-pkg-install" for name in tests),
    ]


def test_nothing_is_loaded_into_a_kubernetes_of_others(tmp_path: Path) -> None:
    theirs = Kubernetes(kubeconfig=tmp_path / "config", tools=tmp_path)
    with pytest.raises(RefusalError, match="use --image"):
        theirs.load_operator(IMAGE)


def test_the_manifest_gets_the_image_and_a_digest_that_stays_text() -> None:
    manifest = deployment.MANIFEST.read_text()
    assert deployment.image_of(manifest) == IMAGE
    text = deployment.rendered(manifest, "registry/other:1", "1234567890123456")
    assert deployment.image_of(text) == "registry/other:1"
    assert '        etcd-operator/image-id: "1234567890123456"\n' in text
    assert deployment.rendered(manifest, IMAGE, "") == manifest


def test_the_operator_of_an_earlier_run_is_ended(tmp_path: Path) -> None:
    """It may be of another version, and drops what it does not know from the status of objects."""
    program = tmp_path / "kubectl"
    program.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/arguments\n')
    program.chmod(0o755)
    deployment.withdraw(Kubernetes(kubeconfig=tmp_path / "kubeconfig", tools=tmp_path))
    words = (tmp_path / "arguments").read_text()
    assert "delete deployment etcd-operator --namespace=etcd-operator --ignore-not-found" in words
    assert "--cascade=foreground" in words


class WithStores(Kubernetes):
    """One into which stores can be loaded: by a program that reports so."""

    loader: tuple[str, ...] = ("sh", "-c", "echo loaded")

    @property
    def store_loader(self) -> tuple[str, ...]:
        return self.loader


@pytest.mark.parametrize(
    ("wanted", "loader", "steps"),
    [
        (["unit", "e2e"], "echo loaded", ["tools", "kubernetes", "unit", "stores", "deploy", "e2e"]),
        (["unit", "e2e"], "exit 1", ["tools", "kubernetes", "unit", "stores FAILED", "deploy", "e2e"]),
        (["unit"], "exit 1", ["tools", "kubernetes", "unit"]),
    ],
)
def test_the_stores_are_built_beside_unit_tests_and_awaited_before_system_tests(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wanted: list[str], loader: str, steps: list[str]
) -> None:
    kubernetes = WithStores(kubeconfig=tmp_path / "kubeconfig", tools=tmp_path)
    monkeypatch.setattr(WithStores, "loader", ("sh", "-c", loader))
    monkeypatch.setattr(suite, "install_tox", lambda: True)
    monkeypatch.setattr(suite, "tox", lambda *_: True)
    monkeypatch.setattr(options, "prepared", lambda _: kubernetes)
    monkeypatch.setattr(checks, "deploy", lambda *_: None)
    withdrawn: list[Kubernetes] = []
    monkeypatch.setattr(checks, "withdraw", withdrawn.append)
    run = checks.Run(chosen(*wanted))
    assert run.run() == ("FAILED" in " ".join(steps))
    assert [name if passed else f"{name} FAILED" for name, _, passed in run._times.rows] == steps
    assert withdrawn == [kubernetes]


def test_stores_are_loaded_into_the_local_kubernetes_only(tmp_path: Path) -> None:
    local = LocalKubernetes(kubeconfig=tmp_path / "kubeconfig", name="ci", tools=tmp_path)
    assert local.store_loader[-5:] == ("images", "--with", "stores", "--name", "ci")
    assert Kubernetes(kubeconfig=tmp_path / "kubeconfig", tools=tmp_path).store_loader == ()


@pytest.mark.parametrize(
    ("wanted", "steps"),
    [
        (
            "lint type imports unit faults package e2e exclusive",
            """run lint, run imports, begin type, run unit, await type, begin package, run faults,
            await package, run e2e, run exclusive""",
        ),
        (
            "lint type imports unit package quick",
            """run lint, run imports, begin type, run unit, await type, begin package, run quick,
            await package""",
        ),
        ("package faults quick", "begin package, run faults, run quick, await package"),
        ("type faults e2e", "run type, run faults, run e2e"),
    ],
)
def test_what_never_waits_runs_beside_what_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wanted: str, steps: str
) -> None:
    done: list[str] = []

    class Beside(suite.Beside):
        def __init__(self, name: str, variables: Mapping[str, str]) -> None:
            super().__init__(["true"], variables)
            self._name = name
            done.append(f"begin {name}")

        def finish(self) -> tuple[float, bool]:
            done.append(f"await {self._name}")
            return super().finish()

    def tox(name: str, variables: Mapping[str, str]) -> bool:
        done.append(f"run {name}")
        return True

    kubernetes = Kubernetes(kubeconfig=tmp_path / "config", tools=tmp_path)
    monkeypatch.setattr(suite, "install_tox", lambda: True)
    monkeypatch.setattr(suite, "tox", tox)
    monkeypatch.setattr(suite, "tox_beside", Beside)
    monkeypatch.setattr(options, "prepared", lambda _: kubernetes)
    monkeypatch.setattr(checks, "deploy", lambda *_: None)
    monkeypatch.setattr(checks, "withdraw", lambda *_: None)
    assert checks.Run(chosen(*wanted.split())).run() == 0
    assert done == [step.strip() for step in steps.split(",")]


def test_a_run_that_is_terminated_ends_what_runs_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[suite.Beside] = []

    def run(self: checks.Run) -> int:
        with self._ending:
            begun.append(self._ending.enter_context(suite.Beside(["sleep", "60"], os.environ)))
            os.kill(os.getpid(), signal.SIGTERM)
            return 0

    monkeypatch.setattr(sys, "argv", ["hack/test"])
    monkeypatch.setattr(checks.Run, "run", run)
    before = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(SystemExit, match="143"):
            checks.main()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert begun[0]._process.returncode == -signal.SIGTERM


def test_what_is_left_early_ends_with_all_that_it_has_started(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    script = f"exec >{tmp_path / 'fifo'}; (nice; sleep 30; echo survived) & wait"
    with suite.Beside(["sh", "-c", script], os.environ):
        output = (tmp_path / "fifo").open()
        priority = int(output.readline())
    with output:
        assert output.read() == ""
    assert priority == min(os.nice(0) + int(suite.PRIORITY_BESIDE), 19)
