"""A kube-apiserver is the client of a cluster that is lost, and goes on by itself after the recovery."""

import json
import subprocess
from pathlib import Path

import pytest

from e2e.support.apiserver import ApiServer, api_server, controllers
from e2e.support.backups import OF_ONE_CLUSTER, back_up
from e2e.support.checks import assert_consistent
from e2e.support.clusters import ephemeral
from e2e.support.space import Space
from e2e.support.waiting import LONG, wait_until
from e2e.test_quorum_lost import NAME, await_recovered, names

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.mark.long
def test_a_kube_apiserver_relists_after_its_whole_etcd_came_back_from_a_backup(
    space: Space, tmp_path: Path
) -> None:
    document = space.created(ephemeral(backup=OF_ONE_CLUSTER))
    space.wait_settled(document)
    address = space.kubectl("get", "service", NAME, "-o", "jsonpath={.spec.clusterIP}")
    with (
        api_server(f"{address}:2379", tmp_path, space.testbed.environment()) as server,
        controllers(server, "serviceaccount-controller"),
    ):
        wait_until(lambda: server.kubectl("create", "configmap", "before"), LONG, "it makes its namespaces")
        await_informers(server, "first")
        back_up(space, NAME)
        server.kubectl("create", "configmap", "later")
        last = json.loads(server.kubectl("get", "--raw", CONFIG_MAPS))["metadata"]["resourceVersion"]
        watch = ["get", "--raw", f"{CONFIG_MAPS}?watch=true&resourceVersion={last}"]
        with subprocess.Popen(
            server.kubectl.command(*watch), env=space.testbed.environment(), stdout=subprocess.PIPE, text=True
        ) as watching:
            space.kubectl("delete", "pod", *names(0, 1, 2), "--now", "--wait=false")
            await_recovered(space, document)
            output, _ = watching.communicate(timeout=LONG)  # it ends by itself
        assert '"DELETED"' not in output, output

        wait_until(lambda: cached(server) == ["before"], LONG, lambda: f"its cache: {cached(server)}")
        assert listed(server) == ["before"]
        (gone,) = server.kubectl(*watch).splitlines()
        assert json.loads(gone)["object"]["code"] == 410, "a client relists"
        server.kubectl("create", "configmap", "after")
        assert listed(server) == ["after", "before"]
        wait_until(
            lambda: cached(server) == ["after", "before"], LONG, lambda: f"its cache: {cached(server)}"
        )
        await_informers(server, "second")
        assert server.is_running
    assert_consistent(space, document)


def await_informers(server: ApiServer, namespace: str) -> None:
    """Create a namespace and wait until the controller has seen it."""
    server.kubectl("create", "namespace", namespace)
    within = server.kubectl.within(namespace)
    wait_until(lambda: within("get", "serviceaccount", "default"), LONG, "the controller has seen it")


def listed(server: ApiServer) -> list[str]:
    """The names of the ConfigMaps as etcd has them."""
    return _names(server.kubectl("get", "--raw", CONFIG_MAPS))


def cached(server: ApiServer) -> list[str]:
    """Their names as the watch cache of the kube-apiserver has them."""
    return _names(server.kubectl("get", "--raw", f"{CONFIG_MAPS}?resourceVersion=0"))


def _names(text: str) -> list[str]:
    return sorted(each["metadata"]["name"] for each in json.loads(text)["items"])
