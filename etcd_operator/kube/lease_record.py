"""The contents of a Lease: its holder, since when, and the pod in which that process runs.

The pod is in an annotation, together with the identity of the holder that wrote it: it is valid only while
the same holder has the Lease. A holder that does not record its pod (an older version, a process outside of a
pod) leaves the annotation as it was, and it is ignored.
"""

from datetime import UTC, datetime
from typing import Any

import msgspec

from etcd_operator.decoding import from_json
from etcd_operator.kube.own_pod import OwnPod
from etcd_operator.kube.resources import LEASES

HOLDER_ANNOTATION = "etcd.improbable.io/lease-holder"


class Spec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Kubernetes' own part."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class _Holder(msgspec.Struct, frozen=True):
    identity: str
    pod: OwnPod


class Lease(msgspec.Struct, frozen=True):
    """The object; its metadata is written back as it was read: labels and owners are not ours."""

    metadata: dict[str, Any]
    spec: Spec = Spec()

    @property
    def version(self) -> str:
        """Changes with every write."""
        return str(self.metadata["resourceVersion"])

    @property
    def pod(self) -> OwnPod | None:
        """The holder's; None if it has none, or none that it wrote itself."""
        text = (self.metadata.get("annotations") or {}).get(HOLDER_ANNOTATION)
        if not text:
            return None
        try:
            holder = from_json(text, _Holder)
        except msgspec.DecodeError:
            return None
        return holder.pod if holder.identity == self.spec.holder_identity else None


def held(old: Lease | None, identity: str, *, seconds: int, now: datetime) -> Spec:
    """The spec with which `identity` acquires or renews the Lease."""
    before = old.spec if old is not None else Spec()
    renews = before.holder_identity == identity
    changes = 0 if old is None else (before.lease_transitions or 0) + (0 if renews else 1)
    return Spec(
        holder_identity=identity,
        lease_duration_seconds=seconds,
        acquire_time=before.acquire_time if renews else micro_time(now),
        renew_time=micro_time(now),
        lease_transitions=changes,
    )


def released(old: Spec, now: datetime) -> Spec:
    """The spec of a Lease that is given up.

    A duration of 1 s lets clients that read only the object acquire it without waiting.
    """
    return msgspec.structs.replace(
        old, holder_identity="", lease_duration_seconds=1, renew_time=micro_time(now)
    )


def document(metadata: dict[str, Any], spec: Spec, pod: OwnPod | None) -> dict[str, Any]:
    """The whole object for a create or a replace. `pod` is that of `spec`'s holder."""
    annotations = dict(metadata.get("annotations") or {})
    annotations.pop(HOLDER_ANNOTATION, None)
    if pod is not None and spec.holder_identity:
        holder = _Holder(identity=spec.holder_identity, pod=pod)
        annotations[HOLDER_ANNOTATION] = msgspec.json.encode(holder).decode()
    return {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {**metadata, "annotations": annotations},
        "spec": msgspec.to_builtins(spec),
    }


def micro_time(moment: datetime) -> str:
    """As `metav1.MicroTime` is written: UTC with six digits of a second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
