"""What the status of an EtcdRole or EtcdUser reports."""

from collections.abc import Iterable
from dataclasses import dataclass

from etcd_operator.api.meta import Condition, condition, condition_of
from etcd_operator.api.users import READY
from etcd_operator.controllers.etcd_auth.decide.state import AuthPlan

APPLIED, INVALID, NO_CLUSTER, WAITING = "Applied", "InvalidSpec", "ClusterNotFound", "ClusterNotReady"
REFUSED = "AuthEnabled"
TAKEN, MISSING, NO_CERTIFICATE = "NameTaken", "RoleMissing", "ClientTLSRequired"
ISSUES = "ClientTLSNotIssued"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether etcd has what an object asks for; reason and message of the condition Ready."""

    is_ready: bool
    reason: str
    message: str

    def condition(self, generation: int) -> Condition:
        """The condition, not yet stamped."""
        return condition(
            READY, holds=self.is_ready, reason=self.reason, message=self.message, generation=generation
        )


def invalid(problem: str) -> Verdict:
    """The spec, or the name, is not valid. What etcd has of it remains."""
    return Verdict(is_ready=False, reason=INVALID, message=problem)


def no_cluster(name: str) -> Verdict:
    """There is no such cluster, or it is being deleted."""
    return Verdict(
        is_ready=False, reason=NO_CLUSTER, message=f"there is no EtcdCluster {name} in this namespace"
    )


def waiting(message: str) -> Verdict:
    """The cluster cannot be asked now."""
    return Verdict(is_ready=False, reason=WAITING, message=message)


def later(*, is_ready: bool) -> Verdict:
    """Another pass comes to it; until then its status remains as it is."""
    return Verdict(is_ready=is_ready, reason=WAITING, message="other users of the cluster come first")


def refused() -> Verdict:
    """The operator has not the rights of root."""
    message = "etcd requires a user, and does not take the operator for root: disable authentication"
    return Verdict(is_ready=False, reason=REFUSED, message=message)


def issues_no_certificates() -> Verdict:
    """The operator has no CA for clients, and may not be root in etcd."""
    message = (
        "not supported for clusters whose certificates for clients the operator does not sign "
        "(tls.client.secretRef or certManager): use etcdctl instead, or a cluster with tls.client.auto"
    )
    return Verdict(is_ready=False, reason=ISSUES, message=message)


def needs_client_tls() -> Verdict:
    """The cluster has no certificates for clients."""
    message = "a user with a certificate needs a cluster with client TLS: use authentication: password"
    return Verdict(is_ready=False, reason=NO_CERTIFICATE, message=message)


def of_role(name: str, plan: AuthPlan) -> Verdict:
    """Once the plan is carried out."""
    if name in plan.taken_roles:
        return _taken("role", name, f"etcdctl role delete {name}")
    return Verdict(is_ready=True, reason=APPLIED, message="etcd has the role")


def of_user(name: str, usernames: Iterable[str], plan: AuthPlan) -> Verdict:
    """Once the plan is carried out. usernames: in etcd, of the EtcdUser of this name."""
    taken = sorted(plan.taken_users & set(usernames))
    if taken:
        return _taken("user", taken[0], f"etcdctl user delete {taken[0]}")
    missing = plan.missing.get(name)
    if missing:
        message = f"etcd has no role {', '.join(missing)}: create an EtcdRole of that name"
        return Verdict(is_ready=False, reason=MISSING, message=message)
    return Verdict(is_ready=True, reason=APPLIED, message="etcd has the user and the roles")


def _taken(what: str, name: str, command: str) -> Verdict:
    message = (
        f"etcd has a {what} {name} that the operator did not add, and that has something granted: choose "
        f"another name, or remove it with `{command}`"
    )
    return Verdict(is_ready=False, reason=TAKEN, message=message)


def was_ready(conditions: Iterable[Condition], generation: int) -> bool:
    """Whether etcd had what this generation asks for: then a change that is needed now reverts somebody's."""
    before = condition_of(conditions, READY)
    return before is not None and before.status == "True" and before.observed_generation == generation
