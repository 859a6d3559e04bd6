"""The text that `kubectl explain` shows for each field of an EtcdRestore, as `definitions.descriptions`."""

from etcd_operator.api.definitions.backup_descriptions import BACKUP
from etcd_operator.api.definitions.descriptions import CONDITIONS, OBSERVED, PARTS, POD_TEMPLATE, STORAGE

_CREDENTIALS = {
    path.replace("spec.destination.", "", 1): text
    for path, text in BACKUP.items()
    if path.startswith("spec.destination.credentials.")
} | {
    "credentials": "Access to the store, from Secrets in the namespace of this object.",
    "credentials.aws.secretKeyRef.optional": "Whether the pods start if the key does not exist.",
    "credentials.googleCloud.secretKeyRef.optional": "Whether the pods start if the key does not exist.",
}
_TEMPLATE = "spec.clusterTemplate.spec"
RESTORE = {
    "": "Creates an EtcdCluster with the data of a backup, once.",
    **PARTS,
    "spec": "The backup, and the EtcdCluster that is created from it. Immutable.",
    "spec.source": "The backup: bucket, objectURL or backupName.",
    "spec.source.bucket": "An object in a bucket.",
    "spec.source.bucket.bucketURL": "The bucket: gs://BUCKET or s3://BUCKET. s3:// has the options region, "
    "endpoint, s3ForcePathStyle and disableSSL.",
    "spec.source.bucket.objectPath": "The path of the object in the bucket.",
    **{f"spec.source.bucket.{path}": text for path, text in _CREDENTIALS.items()},
    "spec.source.objectURL": "The URL of the object, in the form that an EtcdBackup has in its status: "
    "s3://, gs:// or file://.",
    **{f"spec.source.{path}": text for path, text in _CREDENTIALS.items()},
    "spec.source.persistentVolumeClaim": "For file://: the volume with the file.",
    "spec.source.persistentVolumeClaim.claimName": "The name of a PersistentVolumeClaim.",
    "spec.source.backupName": "A completed EtcdBackup in the same namespace.",
    "spec.encryption": "The keys of an encrypted backup.",
    "spec.encryption.secretName": "A Secret with one key of 32 bytes, raw or in base64, in each entry.",
    "spec.serviceAccountName": BACKUP["spec.serviceAccountName"].replace("the pod", "the pods", 1),
    "spec.clusterTemplate": "The new EtcdCluster.",
    "spec.clusterTemplate.clusterName": "The name of the new EtcdCluster. Neither an EtcdCluster with this "
    "name nor claims of one may exist.",
    _TEMPLATE: "The spec of the new EtcdCluster.",
    f"{_TEMPLATE}.replicas": "The number of members.",
    f"{_TEMPLATE}.version": "The version of etcd. It must have the minor version of the backup or the next "
    "minor version. Default: the version of the backup.",
    f"{_TEMPLATE}.affinity": "An alternative to podTemplate.affinity; set one of the two.",
    **{
        path.replace("spec.", f"{_TEMPLATE}.", 1): text.removesuffix(" Immutable.")
        for path, text in {**STORAGE, **POD_TEMPLATE}.items()
    },
    **OBSERVED,
    "status.phase": "Pending, Completed or Failed.",
    "status.startTime": "When the operator accepted this object.",
    "status.completionTime": "When the restore was completed, or failed.",
    "status.url": "Where the backup is.",
    "status.backup": "The EtcdBackup of source.backupName, as it was when the restore began.",
    "status.backup.uid": "The UID of the EtcdBackup.",
    "status.backup.sha256": "The SHA-256 of the snapshot that the EtcdBackup has stored.",
    "status.backup.spec": "The spec of the EtcdBackup; it contains the access to the store.",
    "status.snapshot": "The snapshot in the backup, as verified.",
    "status.snapshot.revision": "The revision of the snapshot.",
    "status.snapshot.keys": "The number of entries in the snapshot; each revision of a key is one.",
    "status.snapshot.size": "The size of the snapshot in bytes.",
    "status.snapshot.sha256": "The SHA-256 of the snapshot, in hexadecimal.",
    "status.snapshot.check": "What the snapshot was compared with: manifest, hash (there is no manifest, but "
    "etcd's hash matches) or none.",
    "status.snapshot.etcdVersion": "The version of etcd that sent the snapshot.",
    "status.version": "The version of etcd of the new EtcdCluster.",
    "status.revisionBump": "How much higher the revisions of the new cluster are than those of the backup.",
    "status.clusterID": "etcd's ID of the new cluster, in hexadecimal.",
    "status.failure": "Why the restore fails.",
    "status.failure.reason": "The reason in one word, for programs.",
    "status.failure.message": "The reason in a sentence.",
    "status.failure.claimsKept": (
        "Whether the data of all members was complete when the restore failed. If so, the claims are not "
        "removed."
    ),
    "status.progress": "How much is done, in steps of 5 percent, counted in bytes.",
    "status.members": "The progress of each member.",
    "status.members[].name": "The name of the member.",
    "status.members[].phase": "Pending, Restoring or Restored.",
    "status.members[].fetchedBytes": "How many bytes of the snapshot the member has fetched and checked.",
    "status.members[].restoredBytes": "How many bytes of the member's database are restored.",
    "status.members[].totalBytes": "The size of the snapshot in bytes, which is about the size of the "
    "database.",
    **CONDITIONS,
}
