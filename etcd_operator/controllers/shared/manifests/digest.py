"""By what a stored ReplicaSet is compared with the wanted one: the stored template has defaults."""

import hashlib

import msgspec

from etcd_operator.api.meta import RawObject


def digest(template: RawObject) -> str:
    """A digest of a template: equal templates have equal ones."""
    return hashlib.sha256(msgspec.json.encode(template, order="deterministic")).hexdigest()[:16]
