"""The clusters of both groups, as users create them."""

from typing import Any

import pytest

from unit.fakes.apiserver import Json, Kind
from unit.fakes.apiserver.kinds import OPERATOR_KINDS

COREOS, IMPROBABLE, PEERS, BACKUPS, SCHEDULES, RESTORES, ROLES, USERS = OPERATOR_KINDS
STORAGE = {"volumeClaimTemplate": {"resources": {"requests": {"storage": "1Gi"}}}}


def ephemeral(name: str = "c", size: int = 3, **spec: Any) -> tuple[Kind, Json]:
    """A `coreos.com` cluster."""
    return COREOS, {"metadata": {"name": name}, "spec": {"size": size, **spec}}


def persistent(name: str = "c", size: int = 3, **spec: Any) -> tuple[Kind, Json]:
    """An `etcd.improbable.io` cluster."""
    asked = {"replicas": size, "version": "3.6.16", "storage": STORAGE}
    return IMPROBABLE, {"metadata": {"name": name}, "spec": {**asked, **spec}}


MAKERS = pytest.mark.parametrize("make", [ephemeral, persistent])
"""Once for each group."""
