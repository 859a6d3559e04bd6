"""What a thousand resources of the largest size cost the process that caches them."""

import subprocess
import sys
from typing import Any

import msgspec
import pytest

from etcd_operator.kube.decode import LARGEST
from etcd_operator.kube.resources import IMPROBABLE_CLUSTERS
from unit.fakes.apiserver.server import ApiServer
from unit.passes.bodies import IMPROBABLE

MOST_MIB = 256
"""Half of the memory limit in `manifests/deployment.yaml`."""

READER = r'''
import pathlib, re, sys, urllib3
from etcd_operator.api.improbable import EtcdCluster
from etcd_operator.decoding import build_all
from etcd_operator.kube.client import Client
from etcd_operator.kube.informer import Informer
from etcd_operator.kube.resources import IMPROBABLE_CLUSTERS, Selection
from etcd_operator.kube.transport import Transport


def most():
    """The largest resident size so far in MiB, without that of the parent, which getrusage includes."""
    return int(re.search(r"VmHWM:\s+(\d+) kB", pathlib.Path("/proc/self/status").read_text())[1]) >> 10

build_all()
began = most()
client = Client(Transport(pool=urllib3.PoolManager(), base_url=sys.argv[1]))
clusters = Informer(client, Selection(resource=IMPROBABLE_CLUSTERS), EtcdCluster, on_crash=print)
clusters.start()
assert clusters.wait_synced(280)
listed = client.list(IMPROBABLE_CLUSTERS, EtcdCluster)
assert len(clusters.store.values()) == len(listed.items) == 1000
assert clusters.stop()
print(began, most())
'''
"""Lists as an informer does at its start, and once more, as it does when its position has expired."""


def largest(number: int) -> dict[str, Any]:
    """A valid EtcdCluster, most of which are many small values: as Python objects they are the largest."""
    expression = {"key": "k", "operator": "In", "values": ["a", "b", "c"]}
    term = {"topologyKey": "z", "labelSelector": {"matchExpressions": [expression] * 10}}
    terms: list[dict[str, Any]] = []
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    made = {
        "apiVersion": IMPROBABLE_CLUSTERS.api_version,
        "kind": IMPROBABLE_CLUSTERS.kind,
        "metadata": {"name": f"c{number}", "namespace": "default"},
        "spec": {"replicas": 3, "version": "3.6.16", "podTemplate": {"affinity": affinity}},
    }
    while len(msgspec.json.encode(made)) < LARGEST - 1024:
        terms.append(term)
    return made


@pytest.mark.exhaustive
def test_a_thousand_resources_of_the_largest_size_fit_into_memory() -> None:
    with ApiServer() as api:
        for number in range(1000):
            api.objects.create(IMPROBABLE, "default", largest(number))
        done = subprocess.run(
            [sys.executable, "-c", READER, api.url], capture_output=True, text=True, check=False, timeout=300
        )
    assert done.returncode == 0, done.stderr
    began, most = map(int, done.stdout.split())
    assert most < MOST_MIB, f"{began} MiB before"
