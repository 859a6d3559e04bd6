"""The claims and the EtcdCluster that an EtcdRestore makes.

Until the data of all members is complete, each claim is owned by the EtcdRestore, and does not record which
etcd cluster it belongs to: an EtcdCluster of that name does not start on it. Then it gets the annotations by
which an EtcdCluster resumes on the claims of an earlier one (`rules.resume`), and loses its owner.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from etcd_operator.api import improbable
from etcd_operator.api.meta import ObjectMeta, RawObject
from etcd_operator.api.restores import API_VERSION, KIND, RESTORED_FROM_LABEL, UID_ANNOTATION, ClusterTemplate
from etcd_operator.api.shared_keys import INITIAL_MEMBERS_ANNOTATION, TOKEN_ANNOTATION
from etcd_operator.controllers.etcd_cluster.decide.kinds.persistent import PERSISTENT
from etcd_operator.controllers.etcd_cluster.manifests.persistent import member_labels
from etcd_operator.controllers.etcd_cluster.manifests.persistent_services import cluster_labels, member_host
from etcd_operator.controllers.shared.decide.clusters import member_name
from etcd_operator.controllers.shared.manifests.owner import owned_by
from etcd_operator.controllers.shared.manifests.restoring_job import RestoredMember
from etcd_operator.controllers.shared.manifests.urls import PEER_PORT, url
from etcd_operator.formats import hex_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The IDs that etcd derives from names, hexadecimal without 0x, as etcd's own tools print them."""

    cluster_id: str
    member_ids: Mapping[str, str]

    @property
    def voters(self) -> tuple[str, ...]:
        """All members, as `name=ID`."""
        return tuple(f"{name}={member_id}" for name, member_id in self.member_ids.items())


def members(metadata: ObjectMeta, template: ClusterTemplate) -> tuple[RestoredMember, ...]:
    """The members of the new cluster. The UID of the EtcdRestore is their token: no other cluster has it."""
    cluster = template.cluster_name
    digits = PERSISTENT.digits
    names = [member_name(cluster, ordinal, digits=digits) for ordinal in range(template.spec.replicas)]
    urls = {
        name: url(
            member_host(cluster, metadata.namespace, name, metadata.uid),
            PEER_PORT,
            is_secure=_has_peer_tls(template),
        )
        for name in names
    }
    labels = {**template.spec.pod_template.metadata.labels, **cluster_labels(cluster)}
    return tuple(
        RestoredMember(name=name, ordinal=ordinal, peer_urls=urls, token=metadata.uid, labels=labels)
        for ordinal, name in enumerate(names)
    )


def identity_of(metadata: ObjectMeta, template: ClusterTemplate) -> Identity:
    """The etcd cluster that these members form."""
    first = members(metadata, template)[0]
    return identity(first.peer_urls, first.token)


def claim(metadata: ObjectMeta, template: ClusterTemplate, member: RestoredMember, version: str) -> RawObject:
    """The claim of a member, before its data is complete. version: of etcd, that starts on it.

    It has from the beginning what a member needs to find its data: a cache may show the annotations of some
    claims before those of others.
    """
    annotations = {
        TOKEN_ANNOTATION: member.token,
        improbable.VERSION_ANNOTATION: version,
        improbable.RESTORED_ANNOTATION: "true",
    }
    if _has_peer_tls(template):
        annotations[improbable.PEER_TLS_ANNOTATION] = "true"
    if template.spec.pod_template.security_context is None:
        annotations[improbable.NON_ROOT_ANNOTATION] = "true"
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": member.name,
            "namespace": metadata.namespace,
            "labels": {
                **member_labels(template.cluster_name, member.name),
                RESTORED_FROM_LABEL: metadata.name,
            },
            "annotations": annotations,
            "ownerReferences": owned_by(API_VERSION, KIND, name=metadata.name, uid=metadata.uid),
        },
        "spec": template.spec.storage.volume_claim_template,
    }


def _has_peer_tls(template: ClusterTemplate) -> bool:
    """Whether the peer URLs in the restored data are https."""
    return template.spec.tls is not None and template.spec.tls.peer is not None


def annotation_patch(member: RestoredMember) -> RawObject:
    """What changes in the metadata of a claim when the data of all members is complete."""
    made = identity(member.peer_urls, member.token)
    return {
        "ownerReferences": None,
        "annotations": {
            INITIAL_MEMBERS_ANNOTATION: ",".join(member.peer_urls),
            improbable.CLUSTER_ID_ANNOTATION: made.cluster_id,
            improbable.MEMBER_ID_ANNOTATION: made.member_ids[member.name],
            improbable.VOTERS_ANNOTATION: ",".join(made.voters),
            improbable.VOTERS_REVISION_ANNOTATION: "1",
        },
    }


def is_of_cluster(claim: ObjectMeta, name: str) -> bool:
    """Whether a claim belongs to a cluster of this name, by its label."""
    return claim.labels.get(improbable.CLUSTER_LABEL) == name


def is_annotated(claim: ObjectMeta, member: RestoredMember) -> bool:
    """Whether a claim was handed over by `annotation_patch`."""
    made = identity(member.peer_urls, member.token)
    found = (
        claim.annotations.get(TOKEN_ANNOTATION),
        claim.annotations.get(improbable.CLUSTER_ID_ANNOTATION),
    )
    return found == (member.token, made.cluster_id) and not claim.controller_uid


def cluster(metadata: ObjectMeta, template: RawObject, version: str) -> RawObject:
    """The EtcdCluster, without an owner: it outlives the EtcdRestore. template: raw, as in its spec."""
    return {
        "apiVersion": improbable.API_VERSION,
        "kind": "EtcdCluster",
        "metadata": {
            "name": template["clusterName"],
            "namespace": metadata.namespace,
            "labels": {RESTORED_FROM_LABEL: metadata.name},
            "annotations": {UID_ANNOTATION: metadata.uid},
        },
        "spec": {**template["spec"], "version": version},
    }


def identity(peer_urls: Mapping[str, str], token: str) -> Identity:
    """The cluster that members with these peer URLs and this token form.

    As etcd 3.4 to 3.7 compute it: the SHA-1 of URL and token is the ID of a member, that of all IDs in order
    the ID of the cluster, eight bytes of each. (The ID of a member that joins later depends on the time.)
    """
    numbers = {name: _number(f"{url}{token}".encode()) for name, url in peer_urls.items()}
    cluster = _number(b"".join(number.to_bytes(8, "big") for number in sorted(numbers.values())))
    member_ids = {name: hex_id(number) for name, number in numbers.items()}
    return Identity(cluster_id=hex_id(cluster), member_ids=member_ids)


def _number(data: bytes) -> int:
    return int.from_bytes(hashlib.sha1(data, usedforsecurity=False).digest()[:8], "big")
