"""Limits of user input: versions, lengths, patterns. Validations, messages and
`etcd_operator.versions` share them.
"""

from typing import Any

from etcd_operator.api.cluster_spec import MOST_MEMBERS
from etcd_operator.api.meta import LONGEST_MESSAGE

OLDEST_MINOR = 4  # learners came with 3.4; without them, adding a member can cost the quorum
NEWEST_MINOR = 7

PATCH_FLOORS = {6: 32, 7: 11}
"""By minor version: the patch of the previous minor that every member must run before the upgrade.

3.5.32 and 3.6.11: earlier releases can restore members that were removed, and lose promotions.
"""

LONGEST_LABEL = 63  # also the limit of a host name and of the name of a Service
NAME_LENGTH = (
    f"must have at most {LONGEST_LABEL} characters, because it is the value of a label: choose a shorter name"
)
LONGEST_IMPROBABLE_NAME = LONGEST_LABEL - len("-9999")
LONGEST_COREOS_NAME = LONGEST_LABEL - len("-99999")
LONGEST_BACKED_UP_NAME = LONGEST_LABEL - len("-backup-tool")

# Patterns are CEL string literals, so a backslash is doubled.
VERSION_PATTERN = (
    rf"^v?3\\.[{OLDEST_MINOR}-{NEWEST_MINOR}]\\.(0|[1-9][0-9]*)(-[0-9A-Za-z-]+(\\.[0-9A-Za-z-]+)*)?$"
)
NAME_PATTERN = "^[a-z]([-a-z0-9]*[a-z0-9])?$"
LABEL_PATTERN = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"

_NAME = {"minLength": 1, "maxLength": 253}
_URL = {"maxLength": 4096}  # longer than what a store accepts, with the options of the longest template
_HISTORY = {"maxItems": 1024}  # more than one entry for each recovery

LONGEST_TEXT, MOST_ITEMS, MOST_ENTRIES, LONGEST_QUANTITY = 1024, 128, 64, 64
"""Of each text, list, map and quantity that `BOUNDS` does not name."""

MOST_ANNOTATED = 16_384
"""Characters of all annotations of a pod template."""

BOUNDS: dict[str, dict[str, Any]] = {
    "status.currentVersion": {"maxLength": 64},
    "spec.version": {"maxLength": 64},
    "clusterName": {"maxLength": LONGEST_LABEL},
    "podTemplate.metadata.annotations": {"additionalProperties": {"type": "string", "maxLength": 4096}},
    "podTemplate.metadata.labels": {"additionalProperties": {"type": "string", "maxLength": LONGEST_LABEL}},
    "initialClusterToken": {"maxLength": LONGEST_LABEL},
    "bootstrap.survivor": {"maxLength": 253},
    "bootstrap.sha256": {"maxLength": 64},
    "initialCluster": {"maxItems": MOST_MEMBERS},
    "initialCluster[].name": {"maxLength": LONGEST_LABEL},
    "initialCluster[].host": {"maxLength": 253},
    "bootstrap.external": {"maxItems": 28},
    "external[].id": {"maxLength": 16},
    "external[].url": {"maxLength": 253},
    "adopt.endpoints": {"minItems": 1, "maxItems": 7},
    "bootMemberClientEndpoint": {"maxLength": 253},
    "leafDuration": {"maxLength": 64},
    "caDuration": {"maxLength": 64},
    "extraDNSNames": {"maxItems": 32},
    "extraDNSNames[]": {"maxLength": 253},
    "extraIPs": {"maxItems": 32},
    "extraIPs[]": {"maxLength": 45},
    **{f"{field}.name": _NAME for field in ("secretRef", "operatorSecretRef")},
    **{f"static.{field}": _NAME for field in ("operatorSecret", "member.peerSecret", "member.serverSecret")},
    **{f"tls.{use}Secret.name": _NAME for use in ("peer", "client", "operator")},
    "issuerRef.name": _NAME,
    "issuerRef.kind": {"minLength": 1, "maxLength": LONGEST_LABEL},
    "issuerRef.group": {"minLength": 1, "maxLength": 253},
    "tls.peerIssuer.name": _NAME,
    "tls.clientIssuer.name": _NAME,
    "tls.peerCA": {"maxLength": 64},
    "tls.clientCA": {"maxLength": 64},
    "networkPolicy.clients": {"minItems": 1, "maxItems": 32},
    "networkPolicy.metrics": {"maxItems": 32},
    "restore.backupClusterName": {"maxLength": LONGEST_LABEL},
    "s3.s3Bucket": {"maxLength": 222},
    "s3.prefix": {"maxLength": 512},
    "s3.awsSecret": {"maxLength": 253},
    "s3.region": {"maxLength": 64},
    "s3.endpoint": {"maxLength": 512},
    "spec.schedule": {"maxLength": 256},
    "timeZone": {"maxLength": 64},
    "retention.maxAge": {"maxLength": 64},
    "clusterRef.name": {"minLength": 1, "maxLength": LONGEST_LABEL},
    "rotateAfter": {"maxLength": 64},
    "source.clusterURL": {"maxLength": 512},
    "objectURLTemplate": {"maxLength": 1024},
    "source.objectURL": {"maxLength": 1024},
    "source.backupName": {"maxLength": 253},
    "bucketURL": {"maxLength": 512},
    "objectPath": {"maxLength": 512},
    "secretKeyRef.name": _NAME,
    "secretKeyRef.key": _NAME,
    "secretName": _NAME,
    "claimName": _NAME,
    "serviceAccountName": {"maxLength": 253},
    "status.conditions[].message": {"maxLength": LONGEST_MESSAGE},
    "status.failure.message": {"maxLength": LONGEST_MESSAGE},
    "recovery.failure": {"maxLength": LONGEST_MESSAGE},
    "recovery.former": _HISTORY,
    "recovery.corruptSources": _HISTORY,
    "status.keptClaims": _HISTORY,
    "recovery.source.url": _URL,
    "status.url": _URL,
    "lastBackup.url": _URL,
    "lastSuccessfulURL": _URL,
    "lastVerifiedURL": _URL,
}
"""Bounds by the end of a field's path: the API server estimates the cost of CEL only for bounded input."""

UNSUPPORTED_FIELDS = {
    "selfHosted.skipBootMemberRemoval": "boolean",
    "pod.labels": "object",
    "pod.annotations": "object",
    "pod.nodeSelector": "object",
    "pod.affinity": "object",
    "pod.antiAffinity": "boolean",
    "pod.resources": "object",
    "pod.tolerations": "array",
    "pod.etcdEnv": "array",
    "pod.persistentVolumeClaimSpec": "object",
    "pod.busyboxImage": "string",
    "pod.DNSTimeoutInSecond": "integer",
    "repository": "string",
    "baseImage": "string",
}
"""Fields of earlier coreos.com operators that this one refuses: path below the spec, and type."""
