"""When authentication is enabled and disabled: every combination of what it rests on."""

import itertools
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from etcd_operator.controllers.etcd_auth.decide.enabling import AuthStep, AuthSwitch, decide

READY = AuthSwitch(wanted=True, is_enabled=False, requires_certificates=True, root_roles=frozenset({"root"}))


@pytest.mark.parametrize(
    ("change", "step", "held"),
    [
        ({}, AuthStep.ENABLE, ""),
        ({"root_roles": None}, AuthStep.ADD_ROOT, ""),
        ({"root_roles": frozenset({"other"})}, AuthStep.GRANT_ROOT, ""),
        ({"requires_certificates": False}, AuthStep.NOTHING, "authentication needs client TLS"),
        ({"not_ready": ("EtcdUser b", "EtcdUser a")}, AuthStep.NOTHING, "authentication is enabled once"),
        ({"is_enabled": True}, AuthStep.NOTHING, ""),
        ({"wanted": None}, AuthStep.NOTHING, ""),
        ({"wanted": None, "is_enabled": True}, AuthStep.NOTHING, ""),
        ({"wanted": False}, AuthStep.NOTHING, ""),
        ({"wanted": False, "is_enabled": True, "not_ready": ("EtcdUser a",)}, AuthStep.DISABLE, ""),
    ],
)
def test_each_step_has_its_conditions(change: dict[str, object], step: AuthStep, held: str) -> None:
    made = decide(replace(READY, **change))  # type: ignore[arg-type]
    assert made.step is step
    assert made.held.startswith(held)
    assert bool(made.held) is bool(held)


def test_the_objects_that_are_awaited_are_named() -> None:
    made = decide(replace(READY, not_ready=("EtcdUser b", "EtcdRole a")))
    assert made.held == "authentication is enabled once these are ready: EtcdRole a, EtcdUser b"


def test_nobody_is_locked_out_whatever_the_state() -> None:
    combined: Iterable[Any] = itertools.product(
        (True, False, None),
        *itertools.repeat((True, False), 2),
        (None, frozenset[str](), frozenset({"root"})),
        ((), ("EtcdUser a",)),
    )
    for wanted, is_enabled, requires, roles, not_ready in combined:
        state = AuthSwitch(
            wanted=wanted,
            is_enabled=is_enabled,
            requires_certificates=requires,
            root_roles=roles,
            not_ready=not_ready,
        )
        made = decide(state)
        if made.step is AuthStep.ENABLE:
            assert state == READY
        if made.step is not AuthStep.NOTHING:
            assert wanted is not None
            assert is_enabled is not wanted
            assert made.held == ""
