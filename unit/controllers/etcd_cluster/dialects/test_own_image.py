"""A dialect that was made without the operator's image renders no pod with an empty one."""

from dataclasses import replace

import pytest

from etcd_operator.api.recoveries import ClaimBackup, Survivor
from etcd_operator.controllers.etcd_cluster.decide.actions import Seeding
from etcd_operator.controllers.etcd_cluster.decide.desired import RestoreFrom
from etcd_operator.controllers.etcd_cluster.dialects.coreos import CoreosDialect
from unit.controllers.etcd_cluster.decide.builders import ephemeral
from unit.controllers.etcd_cluster.dialects.builders import DEFAULTS

FROM_BACKUP = Seeding(token="t", source=ClaimBackup(cluster="old"))
FROM_SURVIVOR = Seeding(token="t", source=Survivor(name="db-0002"))
CLUSTER = replace(ephemeral(), restore=RestoreFrom(cluster="old"))


def test_a_seed_that_needs_the_image_is_not_rendered_without_one() -> None:
    with pytest.raises(RuntimeError, match="no image of the operator"):
        CoreosDialect(DEFAULTS).member(CLUSTER, "db-0003", FROM_BACKUP)


def test_one_that_does_not_need_it_is() -> None:
    pod = CoreosDialect(DEFAULTS).member(CLUSTER, "db-0003", FROM_SURVIVOR)
    assert all(container["image"] for container in pod["spec"]["initContainers"])


def test_the_image_is_that_of_the_operator() -> None:
    pod = CoreosDialect(DEFAULTS, lambda: "operator:1").member(CLUSTER, "db-0003", FROM_BACKUP)
    assert "operator:1" in {container["image"] for container in pod["spec"]["initContainers"]}
