"""The text that `kubectl explain` shows for each field of an EtcdRestore, as `api.descriptions`."""

from etcd_operator.api.backup_descriptions import BACKUP
from etcd_operator.api.descriptions import CONDITIONS, OBSERVED, PARTS, POD_TEMPLATE, STORAGE

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
    "": "A new EtcdCluster with the data of a backup. It is carried out once.",
    **PARTS,
    "spec": "The backup, and the EtcdCluster that is created from it. Immutable.",
    "spec.source": "The backup: bucket, objectURL or backupName.",
    "spec.source.bucket": "An object in a bucket.",
    "spec.source.bucket.bucketURL": "The bucket: gs://BUCKET or s3://BUCKET. s3:// has the options region, "
    "endpoint, s3ForcePathStyle and disableSSL.",
    "spec.source.bucket.objectPath": "The path of the object in the bucket.",
    **{f"spec.source.bucket.{path}": text for path, text in _CREDENTIALS.items()},
    "spec.source.objectURL": "The URL of the object, as that of an EtcdBackup: s3://, gs:// or file://.",
    **{f"spec.source.{path}": text for path, text in _CREDENTIALS.items()},
    "spec.source.persistentVolumeClaim": "For file://: the volume with the file.",
    "spec.source.persistentVolumeClaim.claimName": "The name of a PersistentVolumeClaim.",
    "spec.source.backupName": "A completed EtcdBackup in the same namespace.",
    "spec.encryption": "The keys of an encrypted backup.",
    "spec.encryption.secretName": "A Secret with one key of 32 bytes, raw or in base64, in each entry.",
    "spec.serviceAccountName": BACKUP["spec.serviceAccountName"].replace("the pod", "the pods", 1),
    "spec.clusterTemplate": "The new EtcdCluster.",
    "spec.clusterTemplate.clusterName": "Its name. Nothing of that name may exist.",
    _TEMPLATE: "Its spec, as that of an EtcdCluster.",
    f"{_TEMPLATE}.replicas": "The number of members.",
    f"{_TEMPLATE}.version": "The version of etcd: of the minor version of the backup or the next one. "
    "Default: the version of the backup.",
    f"{_TEMPLATE}.affinity": "The same as podTemplate.affinity; set one of them.",
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
    "status.backup.uid": "Its UID.",
    "status.backup.sha256": "The SHA-256 of the snapshot that it has stored.",
    "status.backup.spec": "Its spec, which has its access to the store.",
    "status.snapshot": "The snapshot in the backup, which was verified.",
    "status.snapshot.revision": "Its revision.",
    "status.snapshot.keys": "The number of its entries; each revision of a key is one.",
    "status.snapshot.size": "Its size in bytes.",
    "status.snapshot.sha256": "Its SHA-256, in hexadecimal.",
    "status.snapshot.check": "What it was compared with: manifest, hash (there is no manifest, etcd's hash "
    "matches) or none.",
    "status.snapshot.etcdVersion": "The version of etcd that sent it.",
    "status.version": "The version of etcd of the new EtcdCluster.",
    "status.revisionBump": "How much higher the revisions of the new cluster are than those of the backup.",
    "status.clusterID": "etcd's ID of the new cluster, in hexadecimal.",
    "status.failure": "Why the restore fails.",
    "status.failure.reason": "In one word, for programs.",
    "status.failure.message": "In a sentence.",
    "status.failure.claimsKept": (
        "Whether the data of all members was complete by then. Then the claims are not removed."
    ),
    "status.progress": "How much is done, in steps of 5 percent, counted in bytes.",
    "status.members": "How far each member is.",
    "status.members[].name": "The name of the member.",
    "status.members[].phase": "Pending, Restoring or Restored.",
    "status.members[].fetchedBytes": "How much of the snapshot it has fetched and checked.",
    "status.members[].restoredBytes": "How much of its database is restored.",
    "status.members[].totalBytes": "The size of the snapshot, and about that of the database.",
    **CONDITIONS,
}
