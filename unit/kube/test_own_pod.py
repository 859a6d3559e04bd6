"""Whose pod a process is in: the downward API's word, and one claim per pod, held by the kernel."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from etcd_operator.kube import own_pod
from etcd_operator.kube.own_pod import VARIABLES, OwnPod, claim

ROOT = Path(__file__).resolve().parents[2]

CLAIM = """
import os, sys
from etcd_operator.kube.own_pod import claim
print(claim(os.environ) is not None, flush=True)
sys.stdin.read()
"""


def environment(uid: str = "") -> dict[str, str]:
    values = {"uid": uid or uuid4().hex, "name": "operator-1", "namespace": "default", "node": "n"}
    return {variable: values[field] for field, variable in VARIABLES.items()}


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """As at the end of a process: the claims of each test end with it."""
    yield
    while own_pod._claims:
        own_pod._claims.pop().close()


def test_a_process_in_a_pod_is_the_pods() -> None:
    assert claim(environment("u")) == OwnPod(uid="u", name="operator-1", namespace="default", node="n")


def test_a_process_outside_of_a_pod_has_none() -> None:
    assert claim({}) is None


@pytest.mark.parametrize("field", VARIABLES)
def test_a_pod_that_is_not_described_whole_is_none(field: str) -> None:
    assert claim({**environment(), VARIABLES[field]: ""}) is None


def test_a_second_process_in_a_pod_is_one_without_a_pod() -> None:
    """As another container, or one that somebody runs with `kubectl exec`."""
    pod = environment()
    assert claim(pod) is not None
    assert claim(pod) is None
    assert claim(environment()) is not None


def test_the_claim_of_a_killed_process_is_free_as_soon_as_it_has_ended() -> None:
    pod = environment()
    with subprocess.Popen(
        [sys.executable, "-c", CLAIM], env={**os.environ, **pod}, cwd=ROOT, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as other:  # fmt: skip
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == "True\n"
            assert claim(pod) is None
        finally:
            other.kill()
        other.wait()
        assert claim(pod) is not None
