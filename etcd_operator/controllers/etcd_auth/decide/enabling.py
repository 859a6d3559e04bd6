"""Whether requests of a cluster need a user: the next step towards what is on record.

Users come first, so that no application is refused that has one. etcd has no way back without role root: so
members must be known to take the operator's certificate for that of root.
"""

from dataclasses import dataclass
from enum import Enum

from etcd_operator.controllers.etcd_auth.decide.names import ROOT


class AuthStep(Enum):
    """What to do in etcd."""

    NOTHING = "nothing"
    ADD_ROOT = "add root"  # without a password
    GRANT_ROOT = "grant root"
    ENABLE = "enable"
    DISABLE = "disable"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthSwitch:
    """What the step rests on.

    wanted: None if nothing is on record: then it remains as it is. requires_certificates: members were
    started so that clients need a certificate, and its CN is the user. root_roles: None if there is no user
    root. not_ready: EtcdUsers and EtcdRoles that etcd does not have as they are declared.
    """

    wanted: bool | None
    is_enabled: bool
    requires_certificates: bool
    root_roles: frozenset[str] | None
    not_ready: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthDecision:
    """The step. held: why there is none although another state is wanted; empty otherwise."""

    step: AuthStep
    held: str = ""


def decide(state: AuthSwitch) -> AuthDecision:
    """The next step. Deterministic, without side effects."""
    if state.wanted is None or state.wanted == state.is_enabled:
        return AuthDecision(step=AuthStep.NOTHING)
    if not state.wanted:
        return AuthDecision(step=AuthStep.DISABLE)
    held = _held(state)
    if held:
        return AuthDecision(step=AuthStep.NOTHING, held=held)
    if state.root_roles is None:
        return AuthDecision(step=AuthStep.ADD_ROOT)
    if ROOT not in state.root_roles:
        return AuthDecision(step=AuthStep.GRANT_ROOT)
    return AuthDecision(step=AuthStep.ENABLE)


def _held(state: AuthSwitch) -> str:
    """Why it cannot be enabled yet; empty if it can."""
    if not state.requires_certificates:
        return "authentication needs client TLS with client certificates"
    if state.not_ready:
        return f"authentication is enabled once these are ready: {', '.join(sorted(state.not_ready))}"
    return ""
