"""The validation rules of each resource, as the API server applies them on every write
(see `definitions.cel`).

One tuple per resource. Each rule has a path, a CEL expression, and a message with what to do.
"""

from etcd_operator.api import improbable
from etcd_operator.api.cluster_spec import AUTOMATIC
from etcd_operator.api.definitions.adoption_validations import COREOS_ADOPTION, IMPROBABLE_ADOPTION
from etcd_operator.api.definitions.cel import Validation, immutable, name_length, one_affinity, reserved
from etcd_operator.api.definitions.coreos_backup_validations import BACKUP_POLICY
from etcd_operator.api.definitions.limits import (
    LABEL_PATTERN,
    LONGEST_COREOS_NAME,
    LONGEST_IMPROBABLE_NAME,
    LONGEST_LABEL,
    MOST_ANNOTATED,
    NAME_PATTERN,
    UNSUPPORTED_FIELDS,
)
from etcd_operator.api.definitions.tls_validations import COREOS_TLS, TLS
from etcd_operator.api.definitions.version_validations import SUPPORTED_VERSION, VERSION_CHANGES


def _of_name(holds: str, message: str) -> Validation:
    return Validation(at="", field=".metadata.name", holds=f"self.metadata.name.{holds}", message=message)


def _name_validations(longest: int) -> tuple[Validation, ...]:
    return (
        name_length(
            longest,
            f"must have at most {longest} characters, because the host names of members are derived "
            f"from it and limited to {LONGEST_LABEL}: choose a shorter name",
        ),
        _of_name(
            f"matches('{NAME_PATTERN}')",
            "must start with a letter, contain only lower-case letters, digits and '-' (no dot), and "
            "not end with '-', because Services and host names are derived from it: choose another name",
        ),
    )


def storage_size(claim: str) -> Validation:
    """The size that the claim at this path requests."""
    return Validation(
        at=f"{claim}.resources.requests",
        holds="!('storage' in self) || (type(self['storage']) == int ? int(self['storage']) > 0 : "
        "isQuantity(string(self['storage'])) && "
        "quantity(string(self['storage'])).isGreaterThan(quantity('0')))",
        message="storage must be greater than 0: set the size of each member's volume, like 8Gi",
    )


VOLUME_SOURCES = ("dataSource", "dataSourceRef", "volumeName")
"""The fields of a claim by which it is not empty at first."""

_INSTEAD = "An EtcdRestore makes a cluster with the data of a backup"
EMPTY_VOLUME = f"members start on empty volumes: remove this field. {_INSTEAD}"


def empty_volumes(claim: str) -> tuple[Validation, ...]:
    """The claim at this path names no volume and no source of data.

    The operator creates claims with its own permissions: its user could read a volume that way, for example
    a copy of a member's volume, without the permission to create claims.
    """
    return tuple(
        Validation(
            at=claim,
            field=f".{field}",
            holds=f"!has(self.{field})",
            message=EMPTY_VOLUME,
        )
        for field in VOLUME_SOURCES
    )


def reserved_names(template: str) -> tuple[Validation, ...]:
    """The annotations and labels that the pod template at this path may not have."""
    return (
        Validation(
            at=f"{template}.metadata.annotations",
            holds=f"self.map(k, k.size() + self[k].size()).sum() <= {MOST_ANNOTATED}",
            message=f"annotations of pods have at most {MOST_ANNOTATED} characters together: shorten them",
        ),
        reserved(
            f"{template}.metadata.annotations",
            _HAS_PREFIX,
            f"annotations that begin with {improbable.RESERVED_PREFIX} are",
        ),
        reserved(
            f"{template}.metadata.labels",
            f"{_HAS_PREFIX} || k in {list(improbable.RESERVED_LABELS)}",
            f"{', '.join(improbable.RESERVED_LABELS)} and labels that begin with "
            f"{improbable.RESERVED_PREFIX} are",
        ),
    )


RECOVERY_AFTER = Validation(
    at="spec",
    field=".recoveryAfterSeconds",
    holds=f"!has(self.recoveryAfterSeconds) || (has(self.recovery) && self.recovery == '{AUTOMATIC}')",
    message=f"has an effect only with spec.recovery: {AUTOMATIC}: set that, too, or remove this field",
)


NETWORK_PEER = "name pods, with podSelector, namespaceSelector or both, or else addresses, with ipBlock"


def network_peers(spec: str) -> tuple[Validation, ...]:
    """Whom the NetworkPolicy of the spec at this path admits."""
    return tuple(
        Validation(
            at=f"{spec}.networkPolicy.{field}[]",
            holds="has(self.ipBlock) != (has(self.podSelector) || has(self.namespaceSelector))",
            message=NETWORK_PEER,
        )
        for field in ("clients", "metrics")
    )


_CLAIM = "spec.storage.volumeClaimTemplate"
_HAS_PREFIX = f"k.startsWith('{improbable.RESERVED_PREFIX}')"

IMPROBABLE_CLUSTER = (
    *_name_validations(LONGEST_IMPROBABLE_NAME),
    SUPPORTED_VERSION,
    *VERSION_CHANGES,
    *(immutable(field) for field in ("podTemplate", "affinity")),
    Validation(
        at="",
        field=".spec.storage",
        # Not `self.?spec.?storage`, whose comparison the API server estimates as too expensive.
        holds="oldSelf.?status.?clusterID.orValue('') == '' || (has(self.spec) == has(oldSelf.spec) && "
        "(!has(self.spec) || (has(self.spec.storage) == has(oldSelf.spec.storage) && "
        "(!has(self.spec.storage) || self.spec.storage == oldSelf.spec.storage))))",
        message="Unsupported changes: spec.storage cannot be changed once the cluster has served: "
        "restore the earlier value",
    ),
    storage_size(_CLAIM),
    *empty_volumes(_CLAIM),
    *reserved_names("spec.podTemplate"),
    *IMPROBABLE_ADOPTION,
    *TLS,
    RECOVERY_AFTER,
    *network_peers("spec"),
    one_affinity("spec", "spec.affinity and spec.podTemplate.affinity are alternatives: set one of them"),
)

OPERATOR_CREATES_PEERS = "the operator creates EtcdPeers: create an EtcdCluster instead"


def _host_of(member: str) -> str:
    """CEL, at `spec` of an EtcdPeer: the pattern of a host of a member of its cluster, in any namespace."""
    service = "'\\\\.' + self.clusterName + '(-peer)?"  # without it, that of a member that was taken over
    return f"'^' + {member} + {service}\\\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?\\\\.svc$'"


# These rules hold for everybody, the operator included, wherever it runs. A rule cannot see the author of a
# write; an admission policy can (`definitions.policies`). Nor can it see the namespace or the status of the
# cluster: `decide.ownership` compares with both.
PEER = (
    name_length(LONGEST_LABEL, f"must have at most {LONGEST_LABEL} characters; {OPERATOR_CREATES_PEERS}"),
    _of_name(
        # Not one pattern that contains the name: the API server would estimate the cost of that as too high.
        "startsWith(self.spec.clusterName + '-') && "
        "self.metadata.name.substring(self.spec.clusterName.size() + 1).matches('^[0-9]+$')",
        "must be the name of its cluster and a number, like my-cluster-0; " + OPERATOR_CREATES_PEERS,
    ),
    Validation(
        at="spec.clusterName",
        holds=f"self.matches('{NAME_PATTERN}')",
        message=f"must be the name of an EtcdCluster; {OPERATOR_CREATES_PEERS}",
    ),
    Validation(
        at="spec.bootstrap.initialClusterToken",
        holds=f"self.matches('{LABEL_PATTERN}')",
        message="must be the token of its cluster, with only lower-case letters, digits and '-'; "
        + OPERATOR_CREATES_PEERS,
    ),
    Validation(
        at="spec",
        field=".bootstrap.static.initialCluster",
        holds="self.bootstrap.static.initialCluster.all(m, "
        "m.name.matches('^' + self.clusterName + '-[0-9]+$') && "
        f"m.host.matches({_host_of('m.name')}))",
        message="must list only members of this cluster, each with its own host, like "
        f"my-cluster-0.my-cluster-peer.my-namespace.svc; {OPERATOR_CREATES_PEERS}",
    ),
    Validation(
        at="spec.bootstrap.external[].id",
        holds="self.matches('^[0-9a-f]+$')",
        message=f"must be a member ID in hexadecimal; {OPERATOR_CREATES_PEERS}",
    ),
    Validation(
        at="spec.bootstrap.external[].url",
        holds="self.matches('^http://[^,=]+$')",
        message=f"must be one peer URL; {OPERATOR_CREATES_PEERS}",
    ),
    Validation(
        at="spec",
        field=".bootstrap.survivor",
        holds="!has(self.bootstrap.survivor) || self.bootstrap.survivor == '' || "
        f"""self.bootstrap.survivor.matches({_host_of("self.clusterName + '-[0-9]+'")})""",
        message="must be the host of a member of this cluster, like "
        f"my-cluster-0.my-cluster-peer.my-namespace.svc; {OPERATOR_CREATES_PEERS}",
    ),
    SUPPORTED_VERSION,
    *empty_volumes(_CLAIM),
    *reserved_names("spec.podTemplate"),
    *(immutable(field) for field in ("clusterName", "storage", "podTemplate")),
    Validation(
        at="spec.bootstrap",
        field=".initialClusterState",
        holds="self.initialClusterState == 'Existing' || oldSelf.initialClusterState == 'New'",
        message="a member that has started cannot bootstrap a cluster again: keep the value Existing",
    ),
)

COREOS_CLUSTER = (
    *_name_validations(LONGEST_COREOS_NAME),
    Validation(
        at="",
        field=".spec",
        holds="has(self.size) || self.?spec.?size.hasValue()",
        message="spec.size is missing: set the number of members, like 3",
    ),
    SUPPORTED_VERSION,
    *VERSION_CHANGES,
    *BACKUP_POLICY,
    *COREOS_ADOPTION,
    *COREOS_TLS,
    RECOVERY_AFTER,
    *network_peers("spec"),
    *(
        Validation(
            at=".".join(("spec", *above)),
            field=f".{name}",
            holds=f"!has(self.{name})",
            message=f"spec.{field} is not supported yet: remove it",
        )
        for field in UNSUPPORTED_FIELDS
        for *above, name in (field.split("."),)
    ),
)
