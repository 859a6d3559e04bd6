"""As whom etcd runs, and what its containers may do.

By default what the Pod Security Standard `restricted` asks for. A user who writes a security context for the
pod has that one instead, whole; what is said of the containers stays.

Volumes outlive operators: what a member's data was written by has to be able to read it for ever. So claims
are marked when they are made for a member that is not root (`NON_ROOT_ANNOTATION`); on one without that mark,
etcd goes on as root (docs/decisions/016).
"""

from dataclasses import dataclass

from etcd_operator.api.meta import RawObject
from etcd_operator.api.podtemplate import PodTemplate

USER = 65532
"""UID and GID of etcd: `nonroot` in the base of etcd's own images. Never changed: it stands on volumes."""

_SECCOMP: RawObject = {"seccompProfile": {"type": "RuntimeDefault"}}
_NO_ESCALATION: RawObject = {"allowPrivilegeEscalation": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """The security contexts of a pod and of each of its containers."""

    pod: RawObject
    container: RawObject


RESTRICTED = Security(
    pod={
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "fsGroup": USER,
        # Kubernetes would go through all files of a volume at each start otherwise.
        "fsGroupChangePolicy": "OnRootMismatch",
        **_SECCOMP,
    },
    container={**_NO_ESCALATION, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}},
)
AS_ROOT = Security(pod=_SECCOMP, container=_NO_ESCALATION)
"""As all members once were."""


def security(template: PodTemplate, *, is_root_owned: bool = False) -> Security:
    """The security of a member's pod.

    is_root_owned: its data was, or may have been, written by root.
    """
    if template.security_context is not None:
        return Security(pod=template.security_context, container=RESTRICTED.container)
    return AS_ROOT if is_root_owned else RESTRICTED
