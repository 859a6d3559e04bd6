"""The security contexts of etcd's pods and containers.

The default complies with the Pod Security Standard `restricted`. A pod security context in the resource
replaces the whole default of the pod; the settings of the containers remain.

Volumes outlive operators, and the user that wrote the data of a member must always be able to read it. So
the operator annotates each claim that it creates for a non-root member (`NON_ROOT_ANNOTATION`). On a claim
without that annotation etcd continues to run as root (docs/decisions/016).
"""

from dataclasses import dataclass

from etcd_operator.api.cluster_spec import PodTemplate
from etcd_operator.api.meta import RawObject

USER = 65532
"""UID and GID of etcd: `nonroot` in the base of etcd's own images. It never changes: volumes contain it."""

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
        # Otherwise Kubernetes processes all files of a volume at each start.
        "fsGroupChangePolicy": "OnRootMismatch",
        **_SECCOMP,
    },
    container={**_NO_ESCALATION, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}},
)
AS_ROOT = Security(pod=_SECCOMP, container=_NO_ESCALATION)
"""The contexts of members of earlier operators."""


def security(template: PodTemplate, *, is_root_owned: bool = False) -> Security:
    """The security contexts of a member's pod.

    is_root_owned: its data was, or may have been, written by root.
    """
    if template.security_context is not None:
        return Security(pod=template.security_context, container=RESTRICTED.container)
    return AS_ROOT if is_root_owned else RESTRICTED


def as_etcd(pod: RawObject) -> RawObject:
    """A context by which the operator's image runs as the user that etcd's image runs as with `pod`.

    Without a user in the context that is root for etcd's image, and another one for the operator's, which can
    then neither use the files of etcd nor see its processes. With runAsNonRoot the platform chooses for both.
    """
    is_decided = "runAsUser" in pod or pod.get("runAsNonRoot", False)
    return pod if is_decided else {**pod, "runAsUser": 0}
