"""Whether requests of a cluster need a user: the next step towards what its spec asks for.

Users come first, so that no application is refused that has one. etcd has no way back without role root: so
the operator must have shown that it is root by its certificate before it takes the step.
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

    wanted: None if the spec does not ask for either: then it remains as it is. requires_certificates: clients
    are served by TLS only, and only with a certificate. is_root: members have taken the operator's
    certificate for that of root. root_roles: None if there is no such user. not_ready: EtcdUsers and
    EtcdRoles that etcd does not have as they are declared.
    """

    wanted: bool | None
    is_enabled: bool
    has_quorum: bool
    requires_certificates: bool
    is_root: bool
    root_roles: frozenset[str] | None
    not_ready: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthDecision:
    """The step, or why there is none; reason and message are those of a condition."""

    step: AuthStep
    is_as_wanted: bool
    reason: str
    message: str


def decide(state: AuthSwitch) -> AuthDecision:
    """The next step. Deterministic, without side effects."""
    if state.wanted is None or state.wanted == state.is_enabled:
        return _done(is_enabled=state.is_enabled)
    if not state.has_quorum:
        return _hold("NoQuorum", "etcd changes nothing without a quorum")
    if not state.wanted:
        return _step(AuthStep.DISABLE, "requests are about to need no user any more")
    held = _held(state)
    if held is not None:
        return held
    if state.root_roles is None:
        return _step(AuthStep.ADD_ROOT, "adding the user root, without a password")
    if ROOT not in state.root_roles:
        return _step(AuthStep.GRANT_ROOT, "granting the role root to the user root")
    return _step(AuthStep.ENABLE, "requests are about to need a user")


def _held(state: AuthSwitch) -> AuthDecision | None:
    """Why it cannot be enabled yet."""
    if not state.requires_certificates:
        return _hold(
            "ClientTLSRequired",
            "authentication needs client TLS: set spec.tls.client with mode Require and client certificates",
        )
    if not state.is_root:
        return _hold("NoRootCertificate", "no member has accepted the certificate of the operator yet")
    if state.not_ready:
        return _hold(
            "UsersNotReady",
            f"authentication is enabled once these are ready: {', '.join(sorted(state.not_ready))}",
        )
    return None


def _done(*, is_enabled: bool) -> AuthDecision:
    reason = "Enabled" if is_enabled else "Disabled"
    message = "requests need a user" if is_enabled else "requests need no user"
    return AuthDecision(step=AuthStep.NOTHING, is_as_wanted=True, reason=reason, message=message)


def _step(step: AuthStep, message: str) -> AuthDecision:
    return AuthDecision(step=step, is_as_wanted=False, reason="Changing", message=message)


def _hold(reason: str, message: str) -> AuthDecision:
    return AuthDecision(step=AuthStep.NOTHING, is_as_wanted=False, reason=reason, message=message)
