"""Limits of user input: versions, lengths, patterns. Validations, messages and
`etcd_operator.versions` share them.
"""

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

_MOST_MEMBERS = 100
_NAME = {"minLength": 1, "maxLength": 253}

_CREDENTIALS = {
    f"credentials.{field}": _NAME
    for field in (
        "aws.secretKeyRef.name",
        "aws.secretKeyRef.key",
        "googleCloud.secretKeyRef.name",
        "googleCloud.secretKeyRef.key",
        "environment.secretName",
    )
}

_OF_BACKUPS = {
    "source.clusterURL": {"maxLength": 512},
    "source.clusterName": {"maxLength": LONGEST_LABEL},
    "destination.objectURLTemplate": {"maxLength": 1024},
    **{f"destination.{path}": bound for path, bound in _CREDENTIALS.items()},
    "destination.persistentVolumeClaim.claimName": _NAME,
    "encryption.secretName": _NAME,
    "serviceAccountName": {"maxLength": 253},
}

_OF_RESTORES = {
    "source.bucket.bucketURL": {"maxLength": 512},
    "source.bucket.objectPath": {"maxLength": 512},
    "source.objectURL": {"maxLength": 1024},
    "source.backupName": {"maxLength": 253},
    "source.persistentVolumeClaim.claimName": _NAME,
    **{f"{at}.{path}": bound for at in ("source", "source.bucket") for path, bound in _CREDENTIALS.items()},
    "clusterTemplate.clusterName": {"maxLength": LONGEST_LABEL},
    "clusterTemplate.spec.version": {"maxLength": 64},
    "clusterTemplate.spec.replicas": {"maximum": _MOST_MEMBERS},
    "clusterTemplate.spec.podTemplate.metadata.annotations": {"maxProperties": 64},
    "clusterTemplate.spec.podTemplate.metadata.labels": {"maxProperties": 64},
}

BOUNDS = {
    "spec.version": {"maxLength": 64},
    "status.currentVersion": {"maxLength": 64},
    "spec.clusterName": {"maxLength": LONGEST_LABEL},
    "spec.bootstrap.initialClusterToken": {"maxLength": LONGEST_LABEL},
    "spec.bootstrap.survivor": {"maxLength": 253},
    "spec.bootstrap.reader.token": {"maxLength": 253},
    "spec.bootstrap.reader.sha256": {"maxLength": 64},
    "spec.bootstrap.static.initialCluster": {"maxItems": _MOST_MEMBERS},
    "spec.bootstrap.static.initialCluster[].name": {"maxLength": LONGEST_LABEL},
    "spec.bootstrap.static.initialCluster[].host": {"maxLength": 253},
    "spec.bootstrap.external": {"maxItems": 28},
    "spec.bootstrap.external[].id": {"maxLength": 16},
    "spec.bootstrap.external[].url": {"maxLength": 253},
    "spec.adopt.endpoints": {"minItems": 1, "maxItems": 7},
    "spec.adopt.endpoints[]": {"maxLength": 128},
    "spec.selfHosted.bootMemberClientEndpoint": {"maxLength": 253},
    "spec.podTemplate.metadata.annotations": {"maxProperties": 64},
    "spec.podTemplate.metadata.labels": {"maxProperties": 64},
    "spec.schedule": {"maxLength": 256},
    "spec.timeZone": {"maxLength": 64},
    "spec.retention.maxAge": {"maxLength": 64},
    "spec.restore.backupClusterName": {"maxLength": LONGEST_LABEL},
    "spec.backup.s3.s3Bucket": {"maxLength": 222},
    "spec.backup.s3.prefix": {"maxLength": 512},
    "spec.backup.s3.awsSecret": {"maxLength": 253},
    "spec.backup.s3.region": {"maxLength": 64},
    "spec.backup.s3.endpoint": {"maxLength": 512},
    **{f"spec.{field}": bound for field, bound in _OF_RESTORES.items()},
    **{
        f"{at}.{field}": bound
        for at in ("spec", "spec.backupTemplate")
        for field, bound in _OF_BACKUPS.items()
    },
}
"""Bounds by path, because the API server can estimate the cost of a CEL rule only for bounded input."""

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
    "TLS": "object",
    "repository": "string",
    "baseImage": "string",
}
"""Fields of earlier coreos.com operators that this one refuses: path below the spec, and type."""
