"""Annotations and labels of `etcd.improbable.io` that code of both groups needs.

Rules name them in messages, for a person to set, remove or select by; the token proves whose a claim is.
"""

from collections.abc import Mapping

from etcd_operator.api.improbable import GROUP

PEER_LABEL = f"{GROUP}/peer-name"

RECOVER_ANNOTATION = f"{GROUP}/recover"
"""On an EtcdCluster without a quorum: the requested recovery (`recovery.requested`)."""

DELETE_CLAIMS = "/delete-claims"
"""Suffix of the name of a recovery in that annotation: the given-up claims are deleted at once."""

RESTORE_ANNOTATION = f"{GROUP}/restore"
"""On an EtcdCluster that serves: the requested restore in place (`recovery.in_place`)."""

ADOPTABLE_ANNOTATION = f"{GROUP}/adoptable-by"
"""On a Service of another namespace, or another EtcdCluster: the EtcdCluster that may adopt its members."""

TOKEN_ANNOTATION = f"{GROUP}/cluster-token"
"""On a claim: the token of the etcd cluster that it was created for.

Also a label of pods, which Services select by."""

STOPPED_ANNOTATION = f"{GROUP}/stopped"
"""`"true"` on the pod of an ephemeral member whose etcd was ended, and whose data is kept (decision 038)."""

RESTARTING_ANNOTATION = f"{GROUP}/restarting"
"""`"true"` on the pod of an ephemeral member whose etcd was ended, to be started again at once."""

LOADED_ANNOTATION = f"{GROUP}/loaded-authorities"
"""On the pod of a member with TLS: the CAs that its etcd has loaded, or newer ones (decision 043)."""

ROTATE_PEER_ANNOTATION = f"{GROUP}/rotate-peer-ca"
ROTATE_CLIENT_ANNOTATION = f"{GROUP}/rotate-client-ca"
"""On an EtcdCluster: each new value requests a rotation of that CA."""

CLIENTS_LABEL = f"{GROUP}/clients"
"""On pods of persistent members that clients may reach: the same token. The client Service selects by it."""


def selected_token(selector: Mapping[str, str]) -> str | None:
    """The token that a Service of persistent members selects by; None without one.

    Those for peers, and the client Service of a cluster that was taken over, select by `TOKEN_ANNOTATION`.
    """
    return selector.get(CLIENTS_LABEL, selector.get(TOKEN_ANNOTATION))


INITIAL_MEMBERS_ANNOTATION = f"{GROUP}/initial-members"
GIVEN_UP_ANNOTATION = f"{GROUP}/given-up-by"
"""On the claim of a given-up member: the name of the recovery. Only a person deletes the claim."""
