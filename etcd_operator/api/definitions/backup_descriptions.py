"""The text that `kubectl explain` shows for each field of an EtcdBackup and an EtcdBackupSchedule."""

from etcd_operator.api.definitions.descriptions import CONDITIONS, OBSERVED, PARTS

_KEY_OF = "A key of a Secret in the namespace of this object."
BACKUP = {
    "": "One backup of an etcd cluster. It is taken once, by a Job.",
    **PARTS,
    "spec": "What is backed up, and where the backup is stored. Immutable.",
    "spec.source": "The etcd cluster: clusterURL or clusterName.",
    "spec.source.clusterURL": "The client URL of an etcd cluster, like http://my-cluster:2379.",
    "spec.source.clusterName": "The name of an EtcdCluster in the same namespace, of either group.",
    "spec.destination": "Where the backup is stored.",
    "spec.destination.objectURLTemplate": "The URL of the backup: s3://BUCKET/KEY, gs://BUCKET/KEY or "
    "file:///FILE. Placeholders: {{ .Name }}, {{ .Namespace }}, {{ .UID }} and {{ .CreationTimestamp }} of "
    "this object. s3:// has the options region, endpoint, s3ForcePathStyle, disableSSL, sse and sseKMSKeyID.",
    "spec.destination.credentials": "Access to the store, from Secrets in the namespace of this object. Not "
    "needed if the platform gives an identity to the service account.",
    "spec.destination.credentials.aws": "For s3://: a file in the format of ~/.aws/credentials.",
    "spec.destination.credentials.aws.secretKeyRef": _KEY_OF,
    "spec.destination.credentials.aws.secretKeyRef.name": "The name of the Secret.",
    "spec.destination.credentials.aws.secretKeyRef.key": "The key in the Secret.",
    "spec.destination.credentials.googleCloud": "For gs://: the JSON key of a service account.",
    "spec.destination.credentials.googleCloud.secretKeyRef": _KEY_OF,
    "spec.destination.credentials.googleCloud.secretKeyRef.name": "The name of the Secret.",
    "spec.destination.credentials.googleCloud.secretKeyRef.key": "The key in the Secret.",
    "spec.destination.credentials.environment": "Environment variables, like AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY.",
    "spec.destination.credentials.environment.secretName": "A Secret; each of its keys becomes a variable.",
    "spec.destination.persistentVolumeClaim": "For file://: the volume that the file is written to.",
    "spec.destination.persistentVolumeClaim.claimName": "The name of a PersistentVolumeClaim.",
    "spec.compression": "zstd compresses the backup. `etcd-operator fetch` decompresses it.",
    "spec.encryption": "Encrypts the backup with AES-256-GCM. `etcd-operator fetch` decrypts it.",
    "spec.encryption.secretName": "A Secret with one key of 32 bytes, raw or in base64, in each entry. "
    "docs/backup.md describes which of these keys encrypts the backup.",
    "spec.serviceAccountName": "The service account of the pod, for an identity that the platform gives to "
    "it. Its token for Kubernetes is not mounted.",
    "spec.verify": "How the backup is verified after it was stored. Hash: everything is read back, and all "
    "hashes are checked. Restore: the backup is also restored, as a test, and served by an etcd of its own. "
    "By default it is not verified.",
    **OBSERVED,
    "status.phase": "BackingUp, Completed or Failed.",
    "status.startTime": "When the operator accepted this object.",
    "status.completionTime": "When the backup was completed, or failed.",
    "status.jobName": "The Job that takes the backup.",
    "status.url": "Where a completed backup is stored: the template with all placeholders replaced.",
    "status.revision": "The revision of the snapshot.",
    "status.keys": "The number of entries in the snapshot; each revision of a key is one.",
    "status.size": "The size of the snapshot in bytes.",
    "status.sha256": "The SHA-256 of the snapshot, in hexadecimal.",
    "status.etcdVersion": "The version of etcd that sent the snapshot.",
    "status.clusterID": "etcd's ID of the cluster, in hexadecimal.",
    "status.verification": "How the backup is verified. The condition Verified has the result.",
    "status.verification.level": "Hash or Restore, as in the spec.",
    "status.verification.jobName": "The Job that verifies the backup.",
    "status.verification.startTime": "When the backup was stored, and its verification was due.",
    "status.verification.completionTime": "When the verification ended.",
    "status.verification.etcdVersion": "The version of the etcd that served the restored data.",
    "status.verification.took": "How many seconds a successful verification took.",
    **CONDITIONS,
}

_BACKUP_TEMPLATE = {
    path.replace("spec.", "spec.backupTemplate.", 1): text
    for path, text in BACKUP.items()
    if path.startswith("spec.")
}
_URL_OF_TEMPLATE = "spec.backupTemplate.destination.objectURLTemplate"
SCHEDULE = {
    "": "Creates an EtcdBackup at each time of a schedule.",
    **PARTS,
    "spec.schedule": "When backups are taken, in the syntax of cron: minute, hour, day of the month, month, "
    "day of the week; or @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually.",
    "spec.timeZone": "The time zone of the schedule, like Europe/Berlin. Default: UTC.",
    "spec.suspend": "While true, no new backups are started; a running backup continues.",
    "spec.startingDeadlineSeconds": "How late a backup may start; after that it is skipped. Default: any "
    "delay.",
    "spec.successfulBackupsHistoryLimit": "How many completed EtcdBackups of this schedule are kept. The "
    "stored backups of EtcdBackups that are deleted are kept, see retention. Default: 3.",
    "spec.failedBackupsHistoryLimit": "How many failed EtcdBackups of this schedule are kept. Default: 1.",
    "spec.retention": "Which stored backups of this schedule are kept; older ones are deleted after each "
    "backup. The newest backup and the newest verified backup are always kept. Without this field, nothing "
    "is deleted.",
    "spec.retention.maxCount": "How many backups are kept.",
    "spec.retention.maxAge": "How much older than the newest backup a backup may be, like 30d or 1d12h.",
    "spec.backupTemplate": "The spec of each EtcdBackup.",
    **_BACKUP_TEMPLATE,
    _URL_OF_TEMPLATE: _BACKUP_TEMPLATE[_URL_OF_TEMPLATE].replace("this object", "the EtcdBackup", 1)
    + " One of Name, UID and CreationTimestamp is required.",
    **OBSERVED,
    "status.schedule": "The schedule and the time zone that `since` belongs to. Persisted state of the "
    "operator.",
    "status.since": "All scheduled times up to this one have been handled. Persisted state of the operator.",
    "status.lastScheduleTime": "The time of the schedule for which a backup was last started.",
    "status.nextScheduleTime": "When the next backup is due.",
    "status.active": "The EtcdBackups of this schedule that have not ended.",
    "status.lastBackup": "The EtcdBackup that was created last.",
    "status.lastBackup.name": "The name of the EtcdBackup.",
    "status.lastBackup.phase": "BackingUp, Completed or Failed.",
    "status.lastBackup.url": "Where the backup is stored, if it is completed.",
    "status.lastSuccessfulTime": "When the last successful backup was completed.",
    "status.lastSuccessfulURL": "Where the last successful backup is stored.",
    "status.lastVerifiedTime": "When the last verified backup was completed.",
    "status.lastVerifiedURL": "Where the last verified backup is stored.",
    "status.lastPrune": "The last deletion of old backups. The condition Pruned has the result.",
    "status.lastPrune.request": "The retention, and the backup after which it was applied. Persisted state "
    "of the operator.",
    "status.lastPrune.time": "When the deletion ended.",
    "status.lastPrune.removed": "How many backups were deleted.",
    "status.lastPrune.stored": "How many backups of this schedule were left after the last successful "
    "deletion.",
    **CONDITIONS,
}
