"""What a person at a terminal sees: help, and one line for whatever is wrong."""

import os
import subprocess
import sys

import pytest

from etcd_operator import __version__, cli
from etcd_operator.commands.run import settings_from as settings_of
from etcd_operator.errors import OperatorError
from etcd_operator.settings import Settings


def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": "/nowhere", **variables}
    command = [sys.executable, "-m", "etcd_operator", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)


def settings_from(*words: str, **environment: str) -> Settings:
    given = vars(cli._parser().parse_args(["run", *words]))
    return settings_of(given, environment)


def test_without_a_command_the_help_is_shown_and_the_exit_code_means_wrong_usage() -> None:
    done = run()
    assert done.returncode == 2
    assert "run the operator" in done.stdout


def test_help_names_every_setting_with_its_default() -> None:
    done = run("run", "--help")
    assert done.returncode == 0
    for name in Settings.__dataclass_fields__:
        assert f"--{name.replace('_', '-')}" in done.stdout
    assert "default: 3.6.16" in " ".join(done.stdout.split())
    assert "no usage data is ever sent" in " ".join(done.stdout.split())


def test_every_flag_has_a_variable_and_a_flag_wins_over_it() -> None:
    assert settings_from(ETCD_OPERATOR_WORKERS="7").workers == 7
    assert settings_from("--workers", "3", ETCD_OPERATOR_WORKERS="7").workers == 3
    assert settings_from(ETCD_OPERATOR_LEADER_ELECT="false").leader_elect is False
    assert settings_from("--no-leader-elect").leader_elect is False
    assert settings_from(ETCD_OPERATOR_RESYNC="2.5").resync == 2.5


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["-analytics=false"], id="with one dash, as the walkthrough writes it"),
        pytest.param(["--analytics=false"], id="with two dashes"),
    ],
)
def test_flags_of_the_older_operator_change_nothing(words: list[str]) -> None:
    assert settings_from(*words) == settings_from()


@pytest.mark.parametrize("flag", ["--pv-provisioner", "-pv-provisioner"])
def test_the_provisioner_of_the_walkthrough(flag: str) -> None:
    settings = settings_from(f"{flag}=kubernetes.io/aws-ebs")
    settings.check()
    assert settings.pv_provisioner == "kubernetes.io/aws-ebs"


@pytest.mark.parametrize(
    ("words", "sees"),
    [
        (["--pv-provisioner", "aws ebs"], "--pv-provisioner must be the name of a provisioner"),
        (["--workers", "0"], "--workers must be at least 1"),
        (["--workers", "many"], "--workers must be a number, not 'many'"),
        (["--resync", "soon"], "--resync must be a number, not 'soon'"),
        (["--log-format", "xml"], "--log-format must be auto, json or console"),
        (["--log-level", "loud"], "--log-level must be debug, info, warning or error"),
        (["--etcd-repository", "etcd:v3.6.16"], "--etcd-repository must be an image name without a tag"),
        (["--default-etcd-version", "latest"], "version 'latest' is not a version of etcd"),
    ],
)
def test_a_wrong_value_is_one_line_and_wrong_usage(
    words: list[str], sees: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["run", *words]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith(f"etcd-operator: {sees}")
    assert printed.count("\n") == 1


def test_a_wrong_variable_is_named() -> None:
    with pytest.raises(OperatorError, match="ETCD_OPERATOR_LEADER_ELECT must be true or false, not 'maybe'"):
        settings_from(ETCD_OPERATOR_LEADER_ELECT="maybe")


@pytest.mark.parametrize(
    ("words", "usage"),
    [
        (["run", "--sidecar"], "usage: etcd-operator run "),
        (["list", "backups", "--sidecar"], "usage: etcd-operator list "),
        (["list"], "usage: etcd-operator list "),
        (["--sidecar"], "usage: etcd-operator [-h] "),
    ],
)
def test_wrong_arguments_show_the_usage_of_the_command(words: list[str], usage: str) -> None:
    done = run(*words)
    assert done.returncode == 2
    assert done.stderr.startswith(usage)
    assert ("unrecognized arguments: --sidecar" in done.stderr) == ("--sidecar" in words)


def test_the_version_is_shown() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"etcd-operator {__version__}\n")


def test_no_configuration_is_one_line() -> None:
    done = run("run")
    assert done.returncode == 1
    assert done.stderr.startswith("etcd-operator: no Kubernetes configuration")
    assert done.stderr.count("\n") == 1


def test_a_kubeconfig_that_is_not_there_is_one_line() -> None:
    done = run("run", "--kubeconfig", "/nowhere/config")
    assert done.returncode == 1
    assert done.stderr == "etcd-operator: cannot use /nowhere/config: it does not exist\n"
