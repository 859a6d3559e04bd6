"""The initial members of both kinds, for the tests of bootstraps."""

import pytest

from etcd_operator.controllers.etcd_cluster.decide.kinds.ephemeral import EPHEMERAL
from etcd_operator.controllers.etcd_cluster.decide.kinds.persistent import PERSISTENT
from unit.controllers.etcd_cluster.decide.builders import ephemeral, persistent

BOTH = pytest.mark.parametrize("cluster", [persistent(), ephemeral()], ids=["persistent", "ephemeral"])

NAMES = {PERSISTENT: ("db-0", "db-1", "db-2"), EPHEMERAL: ("db-0000", "db-0001", "db-0002")}
