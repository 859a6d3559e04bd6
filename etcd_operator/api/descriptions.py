"""What `kubectl explain` says about each field; a test keeps the tables complete.

Pieces "as in a pod" are described at their top only: `kubectl explain pod.spec` has the rest.
"""

from etcd_operator.api.validations import UNBUILT

_SECURITY = (
    "The security context of the pods, as in a pod; in place of the whole default, which is what the Pod "
    "Security Standard restricted asks for: user, group and fsGroup 65532, seccomp profile RuntimeDefault."
)
_STORAGE = {
    "spec.storage": "Where the members keep their data. Cannot change once the cluster exists.",
    "spec.storage.volumeClaimTemplate": "The spec of each member's PersistentVolumeClaim; "
    "resources.requests.storage is required.",
}
_POD_TEMPLATE = {
    "spec.podTemplate": "What is put on the members' pods. Cannot change once the cluster exists.",
    "spec.podTemplate.metadata": "Labels and annotations of the pods. Names that begin with "
    "etcd.improbable.io/ are reserved.",
    "spec.podTemplate.metadata.annotations": "Annotations of the pods, for example for Prometheus.",
    "spec.podTemplate.metadata.labels": "Labels of the pods.",
    "spec.podTemplate.resources": "Requests and limits of the etcd container, as in a pod.",
    "spec.podTemplate.affinity": "Node and pod affinity of the pods, as in a pod.",
    "spec.podTemplate.nodeSelector": "Labels of the nodes that pods may run on.",
    "spec.podTemplate.tolerations": "Taints that the pods tolerate, as in a pod.",
    "spec.podTemplate.topologySpreadConstraints": "How pods spread over zones and nodes, as in a pod.",
    "spec.podTemplate.priorityClassName": "The PriorityClass of the pods.",
    "spec.podTemplate.securityContext": _SECURITY,
}
_CONDITIONS = {
    "status.conditions": "What is true of this object now, with reasons.",
    "status.conditions[].type": "What the condition is about.",
    "status.conditions[].status": "Whether it holds.",
    "status.conditions[].reason": "Why, in one word.",
    "status.conditions[].message": "Why, in a sentence.",
    "status.conditions[].lastTransitionTime": "Since when the status is what it is.",
    "status.conditions[].observedGeneration": "The generation of the spec that was looked at.",
}
_BOOTSTRAP = {
    "status.bootstrap": "How the cluster was founded; the operator's memory.",
    "status.bootstrap.members": "The members that founded the cluster.",
    "status.bootstrap.token": "etcd's initial cluster token.",
    "status.bootstrap.version": "The version of etcd that the initial members were started with.",
    "status.upgrade": "The upgrade that is under way.",
    "status.upgrade.from": "The lowest version that ran when it began.",
    "status.upgrade.to": "The version that all members are taken to.",
    "status.upgrade.member": "The member whose turn it is.",
    "status.upgrade.since": "When it began.",
    "status.clusterID": "etcd's ID of the cluster, in hexadecimal.",
    "status.recovery": "How data was, or is being, saved after a quorum was lost for good; the operator's "
    "memory.",
    "status.recovery.generation": "How many recoveries there were, this one included.",
    "status.recovery.survivor": "The member whose data was taken.",
    "status.recovery.revision": "The newest revision that it had.",
    "status.recovery.version": "The version of etcd that it ran.",
    "status.recovery.seed": "The first member of the new cluster.",
    "status.recovery.token": "etcd's initial cluster token of the new cluster.",
    "status.recovery.replaces": "etcd's ID of the cluster that was given up, in hexadecimal; "
    "empty if its quorum came back before that.",
}
_OBSERVED = {"status.observedGeneration": "The generation of the spec that this status answers."}

_PARTS = {"spec": "What is asked for.", "status": "What the operator sees."}

IMPROBABLE_CLUSTER = {
    "": "An etcd cluster whose members keep their data on volumes of their own.",
    **_PARTS,
    "spec.replicas": "How many members the cluster has; odd numbers survive more.",
    "spec.version": "The version of etcd, like 3.6.16.",
    **_STORAGE,
    **_POD_TEMPLATE,
    "spec.affinity": "The same as spec.podTemplate.affinity, of which it is the older place.",
    **_OBSERVED,
    "status.replicas": "How many EtcdPeers there are.",
    "status.readyReplicas": "How many members serve.",
    "status.selector": "The label selector of the members' pods.",
    "status.members": "The members as etcd itself last listed them.",
    "status.members[].name": "The member's name, which is that of its EtcdPeer.",
    "status.members[].id": "etcd's ID of the member, in hexadecimal.",
    "status.members[].role": "Leader, Voter or Learner.",
    "status.members[].healthy": "Whether the member answered when last asked.",
    "status.members[].version": "The version of etcd that the member runs.",
    "status.leader": "The name of the leader.",
    "status.clusterVersion": "etcd's own cluster version, the minor version that all members can speak, as "
    "X.Y.0.",
    "status.currentVersion": "The lowest version of etcd that a voting member runs.",
    **_BOOTSTRAP,
    "status.keptClaims": "Claims of members that a recovery gave up: yours to keep or to delete.",
    "status.endpoints": "Each member's URL for clients.",
    **_CONDITIONS,
}

PEER = {
    "": "One member of an EtcdCluster. Made by the operator, not by users.",
    **_PARTS,
    "spec.clusterName": "The EtcdCluster that this member belongs to.",
    "spec.version": "The version of etcd.",
    "spec.bootstrap": "How this member's etcd starts.",
    "spec.bootstrap.initialClusterState": "New bootstraps a cluster, Existing never does.",
    "spec.bootstrap.static": "The cluster that etcd is told of at its start.",
    "spec.bootstrap.static.initialCluster": "The members of that cluster.",
    "spec.bootstrap.static.initialCluster[].name": "The member's name.",
    "spec.bootstrap.static.initialCluster[].host": "The member's DNS name, without a port.",
    "spec.bootstrap.initialClusterToken": "etcd's initial cluster token.",
    "spec.bootstrap.survivor": "The host of the member whose data is fetched and restored first; only "
    "for the seed of a recovery.",
    **_STORAGE,
    **_POD_TEMPLATE,
    **_OBSERVED,
    "status.serverVersion": "The version of etcd that the member runs.",
    "status.memberID": "etcd's ID of the member, in hexadecimal.",
    **_CONDITIONS,
}

COREOS_CLUSTER = {
    "": "An etcd cluster whose members keep their data as long as their pods live.",
    **_PARTS,
    "size": "The oldest place of spec.size, which wins over it.",
    "spec.size": "How many members the cluster has, 1 to 7; odd numbers survive more.",
    "spec.version": "The version of etcd, like v3.5.35; the operator's default when absent.",
    "spec.paused": "While true the operator only looks at this cluster and changes nothing.",
    "spec.nodeSelector": "Labels of the nodes that pods may run on.",
    "spec.antiAffinity": "While true no two members of the cluster run on one node.",
    "spec.pod": "What is put on the members' pods.",
    "spec.pod.securityContext": _SECURITY,
    **{f"spec.{field}": "Not supported yet: refused." for field in UNBUILT},
    **_OBSERVED,
    "status.phase": "Creating, Running or Failed.",
    "status.size": "How many members there are.",
    "status.selector": "The label selector of the members' pods.",
    "status.currentVersion": "The lowest version of etcd that a voting member runs.",
    "status.targetVersion": "The version of etcd that is wanted.",
    "status.members": "The members by name.",
    "status.members.ready": "Members that serve.",
    "status.members.unready": "Members that do not.",
    "status.endpoints": "Each member's URL for clients.",
    **_BOOTSTRAP,
    "status.nextOrdinal": "The number of the next member; numbers are never used again.",
    **_CONDITIONS,
}
