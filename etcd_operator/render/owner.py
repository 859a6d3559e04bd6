"""Owner references: what belongs to whom, so that Kubernetes removes it with its owner."""

from etcd_operator.api.meta import RawObject


def owned_by(api_version: str, kind: str, *, name: str, uid: str) -> list[RawObject]:
    """A single controlling owner.

    `controller: true` matters beyond garbage collection: without it `kubectl drain`
    refuses a bare pod.
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
