"""The text that `kubectl explain` shows for each field; a test keeps the tables complete.

Fields that are the same as in a pod are described only at their top: `kubectl explain pod.spec` has the rest.
"""

from etcd_operator.api.definitions.limits import UNSUPPORTED_FIELDS

_SECURITY = (
    "The security context of the pods, with the fields of a pod's security context. It replaces the whole "
    "default, which complies with the Pod Security Standard restricted: user, group and fsGroup 65532, "
    "seccomp profile RuntimeDefault."
)
STORAGE = {
    "spec.storage": "The storage of each member. Immutable.",
    "spec.storage.volumeClaimTemplate": "The spec of each member's PersistentVolumeClaim; "
    "resources.requests.storage is required.",
}
POD_TEMPLATE = {
    "spec.podTemplate": "Settings of the members' pods. Immutable.",
    "spec.podTemplate.metadata": "Labels and annotations of the pods. Names that begin with "
    "etcd.improbable.io/ are reserved.",
    "spec.podTemplate.metadata.annotations": "Annotations of the pods, for example for Prometheus.",
    "spec.podTemplate.metadata.labels": "Labels of the pods.",
    "spec.podTemplate.resources": "Requests and limits of the etcd container, as in a pod.",
    "spec.podTemplate.affinity": "Node and pod affinity of the pods, as in a pod.",
    "spec.podTemplate.nodeSelector": "Labels of the nodes that the pods may run on.",
    "spec.podTemplate.tolerations": "Taints that the pods tolerate, as in a pod.",
    "spec.podTemplate.topologySpreadConstraints": "How the pods spread over zones and nodes, as in a pod.",
    "spec.podTemplate.priorityClassName": "The PriorityClass of the pods.",
    "spec.podTemplate.securityContext": _SECURITY,
}
CONDITIONS = {
    "status.conditions": "The current state of this object.",
    "status.conditions[].type": "The type of the condition.",
    "status.conditions[].status": "True, False or Unknown.",
    "status.conditions[].reason": "The reason for the status, in one word, for programs.",
    "status.conditions[].message": "The reason for the status, in a sentence.",
    "status.conditions[].lastTransitionTime": "When the status last changed.",
    "status.conditions[].observedGeneration": "The generation of the spec that the condition is based on.",
}
_PERSISTED = {
    "status.bootstrap": "How the cluster was bootstrapped. Persisted state of the operator.",
    "status.bootstrap.members": "The initial members of the cluster.",
    "status.bootstrap.token": "etcd's initial cluster token.",
    "status.bootstrap.version": "The version of etcd that the initial members started with.",
    "status.upgrade": "The upgrade in progress.",
    "status.upgrade.from": "The lowest version that ran when the upgrade began.",
    "status.upgrade.to": "The version that all members are upgraded to.",
    "status.upgrade.member": "The member that is being upgraded.",
    "status.upgrade.since": "When the upgrade began.",
    "status.clusterID": "etcd's ID of the cluster, in hexadecimal.",
    "status.recovery": "The last recovery from a lost quorum, or restore in place, in progress or finished. "
    "Persisted state of the operator.",
    "status.recovery.generation": "The number of this recovery; the first one is 1.",
    "status.recovery.survivor": "The survivor: the member whose data is restored. Empty if a backup is "
    "restored.",
    "status.recovery.sha256": "The SHA-256 of the survivor's database, if the database was read because the "
    "survivor restarted without a quorum; otherwise empty.",
    "status.recovery.revision": "The latest revision of the survivor, or of the backup.",
    "status.recovery.version": "The version of etcd with which the seed starts: that of the survivor or of "
    "the backup; with spec.restore that of the spec; in a restore in place the lowest that a voting member "
    "ran.",
    "status.recovery.backup": "The backup that is restored.",
    "status.recovery.backup.cluster": "The name of the EtcdCluster that was backed up.",
    "status.recovery.backup.via": "How the seed gets the backup: from a backup tool (Tool), from the claim "
    "or the bucket of a backup tool (Claim, Bucket), or by a Job with the credentials of an EtcdBackup "
    "(Object).",
    "status.recovery.backup.name": "The name of the backup, or of the EtcdBackup.",
    "status.recovery.backup.sha256": "The SHA-256 of the backup.",
    "status.recovery.backup.time": "When the backup was taken.",
    "status.recovery.backup.age": "How many seconds old the backup was when it was chosen.",
    "status.recovery.former": "etcd's IDs of the clusters that earlier recoveries gave up, in hexadecimal.",
    "status.recovery.automatic": "Whether this recovery started automatically (spec.recovery: Automatic).",
    "status.recovery.stable": "Whether the cluster has served for an hour since a recovery that started "
    "automatically. Until then, no other recovery starts automatically.",
    "status.recovery.followsAutomatic": "Whether this recovery followed an automatic one before the cluster "
    "had served for an hour.",
    "status.recovery.backup.url": "Where the EtcdBackup that is restored stored its backup.",
    "status.recovery.backup.spec": "The spec of the EtcdBackup that is restored; it contains the access to "
    "the store.",
    "status.recovery.seed": "The first member of the new cluster.",
    "status.recovery.token": "etcd's initial cluster token of the new cluster.",
    "status.recovery.replaces": "etcd's ID of the cluster that was given up, in hexadecimal; "
    "empty if its quorum returned in time, or a restore in place was cancelled or failed.",
    "status.recovery.bump": "The number that was added to revisions by this recovery. Default: 1000000000.",
    "status.recovery.inPlace": "Whether this is a restore in place: a cluster that served was given up for a "
    "backup.",
    "status.recovery.givenUp": "The last revision that the operator observed of the cluster that a restore "
    "in place gave up. Clients that were still connected may have written later ones.",
    "status.recovery.failure": "Why a restore in place ended without a change.",
}
_ADOPTION = {
    "spec.adopt": "A running etcd cluster to join instead of bootstrapping a new one. The existing "
    "(external) members are removed afterwards, unless the mode is Join or Leave. Cannot be set once the "
    "cluster is bootstrapped, except to continue an adoption.",
    "spec.adopt.endpoints": "The client URL of each member of the cluster to join.",
    "spec.adopt.mode": "Complete (the default): the members of this resource join, then the external members "
    "are removed. Join: they join, and the external members are kept. Leave: they leave that cluster again; "
    "possible until the first external member is removed.",
    "status.adoption": "The adoption of a running cluster, in progress or finished. Persisted state of the "
    "operator.",
    "status.adoption.members": "The external members at the beginning of the adoption.",
    "status.adoption.members[].id": "etcd's ID of the member, in hexadecimal.",
    "status.adoption.members[].endpoint": "The HOST:PORT at which the member serves clients.",
    "status.adoption.members[].peerURLs": "The peer URLs of the member.",
    "status.adoption.members[].removed": "Whether the removal of the member has begun.",
    "status.adoption.committed": "The raft index that the members had committed when the operator last wrote "
    "status.adoption.",
    "status.adoption.lastMemberRemoved": "Whether the only member of this resource is leaving the adopted "
    "cluster, or has left it.",
    "status.adoption.finished": "Whether only members of this resource are left.",
}
_RECOVERY = {
    "spec.recovery": "Manual (the default): members that do not answer are given up only on request. "
    "Automatic: if the quorum is lost, and stays lost for recoveryAfterSeconds, the operator gives up the "
    "members that do not answer, and recovers the cluster without a request. Writes that only these members "
    "have are then lost.",
    "spec.recoveryAfterSeconds": "How many seconds the quorum must be lost, and each member that is given up "
    "must be silent, before an automatic recovery starts. Default: 600. The count restarts if the operator "
    "restarts or cannot reach the API server.",
}
OBSERVED = {"status.observedGeneration": "The generation of the spec that this status is based on."}

PARTS = {"spec": "The desired state.", "status": "The observed state, written by the operator."}

IMPROBABLE_CLUSTER = {
    "": "An etcd cluster with persistent members: each keeps its data on its own volume.",
    **PARTS,
    "spec.replicas": "The number of members: 1 for tests, otherwise 3 or 5. Even numbers, and more than 7, "
    "cause a warning.",
    "spec.version": "The version of etcd, like 3.6.16.",
    **STORAGE,
    **POD_TEMPLATE,
    **_ADOPTION,
    **_RECOVERY,
    "spec.affinity": "An alternative to spec.podTemplate.affinity, from earlier versions of this API.",
    **OBSERVED,
    "status.replicas": "The number of EtcdPeers.",
    "status.readyReplicas": "The number of members that serve.",
    "status.selector": "The label selector of the members' pods.",
    "status.members": "The members as last reported by etcd.",
    "status.members[].name": "The name of the member and of its EtcdPeer.",
    "status.members[].id": "etcd's ID of the member, in hexadecimal.",
    "status.members[].role": "Leader, Voter or Learner.",
    "status.members[].healthy": "Whether the member was healthy when the operator last probed it.",
    "status.members[].version": "The version of etcd that the member runs.",
    "status.leader": "The name of the leader.",
    "status.clusterVersion": "etcd's own cluster version, the minor version that all members support, "
    "as X.Y.0.",
    "status.currentVersion": "The lowest version of etcd that a voting member runs.",
    **_PERSISTED,
    "status.keptClaims": "Claims of members that a recovery gave up. Keep or delete them.",
    "status.endpoints": "The client URL of each member.",
    **CONDITIONS,
}

PEER = {
    "": "A member of an EtcdCluster. Created by the operator, not by users.",
    **PARTS,
    "spec.clusterName": "The EtcdCluster that this member belongs to.",
    "spec.version": "The version of etcd.",
    "spec.bootstrap": "How the etcd of this member starts.",
    "spec.bootstrap.initialClusterState": "New bootstraps a cluster, Existing never does.",
    "spec.bootstrap.static": "The members that etcd is configured with at its start.",
    "spec.bootstrap.static.initialCluster": "The members that etcd is configured with at its start, each "
    "with its name and host.",
    "spec.bootstrap.static.initialCluster[].name": "The name of the member.",
    "spec.bootstrap.static.initialCluster[].host": "The DNS name of the member, without a port.",
    "spec.bootstrap.initialClusterToken": "etcd's initial cluster token.",
    "spec.bootstrap.external": "The external members of the adopted cluster when this member joined.",
    "spec.bootstrap.external[].id": "etcd's ID of the member, in hexadecimal.",
    "spec.bootstrap.external[].url": "A peer URL of the member.",
    "spec.bootstrap.reader": "The container that serves the data of the survivor, if the survivor restarted "
    "without a quorum.",
    "spec.bootstrap.reader.token": "The token that this container requires of its clients.",
    "spec.bootstrap.reader.sha256": "The SHA-256 of the data that is fetched.",
    "spec.bootstrap.survivor": "The host of the member whose data is fetched and restored before the start; "
    "only for the seed of a recovery.",
    **STORAGE,
    **POD_TEMPLATE,
    **OBSERVED,
    "status.serverVersion": "The version of etcd that the member runs.",
    "status.memberID": "etcd's ID of the member, in hexadecimal.",
    **CONDITIONS,
}

COREOS_CLUSTER = {
    "": "An etcd cluster with ephemeral members: their data exists as long as their pods.",
    **PARTS,
    "size": "The place of spec.size in the oldest version of this API; spec.size takes precedence.",
    "spec.size": "The number of members: 1 for tests, otherwise 3 or 5. Even numbers, and more than 7, cause "
    "a warning.",
    "spec.version": "The version of etcd, like v3.5.35. Default of a new cluster: --default-etcd-version of "
    "the operator.",
    "spec.paused": "While true, the operator changes nothing in this cluster and only reports its status.",
    "spec.nodeSelector": "Labels of the nodes that the pods may run on.",
    "spec.antiAffinity": "While true, two members of the cluster never run on the same node.",
    "spec.pod": "Settings of the members' pods.",
    "spec.pod.securityContext": _SECURITY,
    **_ADOPTION,
    **_RECOVERY,
    "spec.selfHosted": "Short form of spec.adopt for a cluster with one member. Mutually exclusive with "
    "spec.adopt and spec.restore.",
    "spec.selfHosted.bootMemberClientEndpoint": "The client URL of the only member of the cluster to join.",
    "spec.restore": "The backup with which a new cluster begins.",
    "spec.restore.backupClusterName": "The EtcdCluster in the same namespace whose newest backup is "
    "restored. It need not exist any more.",
    "spec.restore.storageType": "Where the backups are. PersistentVolume (the default): on the claim "
    "`NAME-pvc` of that cluster. S3: in the bucket that spec.backup.s3 of the new cluster names.",
    "spec.backup": "Regular backups of the cluster. Without this field, or with maxBackups: 0, no backups "
    "are taken.",
    "spec.backup.backupIntervalInSecond": "The seconds between two backups; 1800 by default.",
    "spec.backup.maxBackups": "How many backups are kept. 0: no backups are taken.",
    "spec.backup.storageType": "PersistentVolume (the default) or S3.",
    "spec.backup.volumeSizeInMB": "For PersistentVolume: the size of the volume in MiB. It cannot become "
    "smaller.",
    "spec.backup.s3": "For S3: where backups are stored.",
    "spec.backup.s3.s3Bucket": "The name of the bucket, which must exist.",
    "spec.backup.s3.prefix": "The folder in the bucket; objects are named PREFIX/v1/NAMESPACE/NAME/FILE.",
    "spec.backup.s3.awsSecret": "A Secret with the files credentials and config as keys, as in ~/.aws.",
    "spec.backup.s3.region": "The region of the bucket, if the file config does not have it.",
    "spec.backup.s3.endpoint": "The URL of a service that is compatible with S3.",
    "spec.backup.cleanupBackupsOnClusterDelete": "While true, all backups are deleted with the cluster. By "
    "default they are kept.",
    **{f"spec.{field}": "Not supported yet: refused." for field in UNSUPPORTED_FIELDS},
    **OBSERVED,
    "status.phase": "Creating, Running or Failed.",
    "status.size": "The number of members.",
    "status.selector": "The label selector of the members' pods.",
    "status.currentVersion": "The lowest version of etcd that a voting member runs.",
    "status.targetVersion": "The desired version of etcd, during an upgrade.",
    "status.members": "The members by name.",
    "status.backup": "The newest backup, and the number and total size of all backups.",
    "status.backup.time": "When the newest backup was begun.",
    "status.backup.name": "The name of the newest backup.",
    "status.backup.revision": "etcd's revision in the newest backup.",
    "status.backup.size": "The size of the newest backup in bytes.",
    "status.backup.etcdVersion": "The version of etcd that sent the newest backup.",
    "status.backup.clusterID": "etcd's ID of the cluster in the newest backup, in hexadecimal.",
    "status.backup.took": "The seconds that the newest backup took; absent if that is not known.",
    "status.backup.count": "The number of backups.",
    "status.backup.totalSize": "The total size of all backups in bytes.",
    "status.members.ready": "Members that serve.",
    "status.members.unready": "Members that do not serve.",
    "status.endpoints": "The client URL of each member.",
    **_PERSISTED,
    "status.nextOrdinal": "The number of the next member; numbers are never reused.",
    **CONDITIONS,
}
