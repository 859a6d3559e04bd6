"""Enables and disables etcd's authentication, as the status of the cluster has it on record."""

from collections.abc import Callable
from dataclasses import replace
from typing import assert_never

from etcd_operator.controllers.etcd_auth.decide.enabling import AuthStep, AuthSwitch, decide
from etcd_operator.controllers.etcd_auth.decide.names import ROOT
from etcd_operator.etcd.auth import AuthClient

MOST_STEPS = len(AuthStep)


def switch(
    client: AuthClient, state: AuthSwitch, before: Callable[[AuthStep], None]
) -> tuple[tuple[AuthStep, ...], str]:
    """Take all steps; those that were taken, and what holds up the next one. Each may be repeated.

    before: called before each step, and may raise. Raises the errors of `AuthClient`.
    """
    taken: list[AuthStep] = []
    while (decision := decide(state)).step is not AuthStep.NOTHING and len(taken) < MOST_STEPS:
        before(decision.step)
        state = _taken(client, state, decision.step)
        taken.append(decision.step)
    return tuple(taken), decision.held


def _taken(client: AuthClient, state: AuthSwitch, step: AuthStep) -> AuthSwitch:
    match step:
        case AuthStep.ADD_ROOT:
            client.add_user(ROOT, None)
            return replace(state, root_roles=frozenset(client.roles_of(ROOT) or ()))
        case AuthStep.GRANT_ROOT:
            client.grant_role(ROOT, ROOT)
            return replace(state, root_roles=frozenset(client.roles_of(ROOT) or ()))
        case AuthStep.ENABLE:
            client.auth_enable()
            return replace(state, is_enabled=True)
        case AuthStep.DISABLE:
            client.auth_disable()
            return replace(state, is_enabled=False)
        case AuthStep.NOTHING:
            return state
        case _:
            assert_never(step)
