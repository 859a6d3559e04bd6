"""When authentication is enabled and disabled: every combination of what it rests on."""

import itertools
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from etcd_operator.controllers.etcd_auth.decide.enabling import AuthStep, AuthSwitch, decide

READY = AuthSwitch(
    wanted=True,
    is_enabled=False,
    has_quorum=True,
    requires_certificates=True,
    is_root=True,
    root_roles=frozenset({"root"}),
)


@pytest.mark.parametrize(
    ("change", "step", "reason"),
    [
        ({}, AuthStep.ENABLE, "Changing"),
        ({"root_roles": None}, AuthStep.ADD_ROOT, "Changing"),
        ({"root_roles": frozenset({"other"})}, AuthStep.GRANT_ROOT, "Changing"),
        ({"has_quorum": False}, AuthStep.NOTHING, "NoQuorum"),
        ({"requires_certificates": False}, AuthStep.NOTHING, "ClientTLSRequired"),
        ({"is_root": False}, AuthStep.NOTHING, "NoRootCertificate"),
        ({"not_ready": ("EtcdUser b", "EtcdUser a")}, AuthStep.NOTHING, "UsersNotReady"),
        ({"is_enabled": True}, AuthStep.NOTHING, "Enabled"),
        ({"wanted": None}, AuthStep.NOTHING, "Disabled"),
        ({"wanted": None, "is_enabled": True}, AuthStep.NOTHING, "Enabled"),
        ({"wanted": False}, AuthStep.NOTHING, "Disabled"),
        ({"wanted": False, "is_enabled": True, "is_root": False}, AuthStep.DISABLE, "Changing"),
        ({"wanted": False, "is_enabled": True, "has_quorum": False}, AuthStep.NOTHING, "NoQuorum"),
    ],
)
def test_each_step_has_its_conditions(change: dict[str, object], step: AuthStep, reason: str) -> None:
    made = decide(replace(READY, **change))  # type: ignore[arg-type]
    assert (made.step, made.reason) == (step, reason)


def test_the_objects_that_are_awaited_are_named() -> None:
    made = decide(replace(READY, not_ready=("EtcdUser b", "EtcdRole a")))
    assert made.message == "authentication is enabled once these are ready: EtcdRole a, EtcdUser b"


def test_nobody_is_locked_out_whatever_the_state() -> None:
    combined: Iterable[Any] = itertools.product(
        (True, False, None),
        *itertools.repeat((True, False), 4),
        (None, frozenset[str](), frozenset({"root"})),
        ((), ("EtcdUser a",)),
    )
    states = [
        AuthSwitch(
            wanted=wanted,
            is_enabled=is_enabled,
            has_quorum=has_quorum,
            requires_certificates=requires,
            is_root=is_root,
            root_roles=roles,
            not_ready=not_ready,
        )
        for wanted, is_enabled, has_quorum, requires, is_root, roles, not_ready in combined
    ]
    for each in states:
        made = decide(each)
        if made.step is AuthStep.ENABLE:
            assert each == READY
        if made.step is not AuthStep.NOTHING:
            assert each.has_quorum
            assert each.wanted is not None
            assert each.is_enabled is not each.wanted
        assert made.is_as_wanted is (each.wanted in (None, each.is_enabled))
