"""Owner references, so that Kubernetes deletes objects with their owner."""

from etcd_operator.api.meta import RawObject


def owned_by(api_version: str, kind: str, *, name: str, uid: str) -> list[RawObject]:
    """A single controlling owner.

    `controller: true` matters not only for garbage collection: without it, `kubectl drain` refuses a pod
    without a ReplicaSet.
    """
    return [
        {
            "apiVersion": api_version,
            "kind": kind,
            "name": name,
            "uid": uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
