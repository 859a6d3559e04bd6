"""Rules of validity in CEL, as the API server applies them on every write.

Each rule is one value in one of the ordered tuples below: where it stands, what must
hold, and the sentence a user sees when it does not, which says what to do. The API server
evaluates all of them, so their order is only that of reading.

`self` is the value at the rule's place, `oldSelf` the stored one; a rule that names
`oldSelf` is asked on updates only.
"""

from dataclasses import dataclass

from etcd_operator.api import improbable

OLDEST_MINOR = 4  # learners came with 3.4, and without them growing can cost quorum
NEWEST_MINOR = 7

LONGEST_LABEL = 63  # also the limit of a host name and of a Service's name
LONGEST_IMPROBABLE_NAME = LONGEST_LABEL - len("-9999")
LONGEST_COREOS_NAME = LONGEST_LABEL - len("-99999")

VERSION_PATTERN = (
    rf"^v?3\\.[{OLDEST_MINOR}-{NEWEST_MINOR}]\\.(0|[1-9][0-9]*)(-[0-9A-Za-z-]+(\\.[0-9A-Za-z-]+)*)?$"
)
NAME_PATTERN = "^[a-z]([-a-z0-9]*[a-z0-9])?$"
LABEL_PATTERN = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
MOST_MEMBERS = 100

# Bounds that only serve to let the API server work out beforehand what a rule may cost.
BOUNDS = {
    "spec.version": {"maxLength": 64},
    "status.currentVersion": {"maxLength": 64},
    "spec.clusterName": {"maxLength": LONGEST_LABEL},
    "spec.bootstrap.initialClusterToken": {"maxLength": LONGEST_LABEL},
    "spec.bootstrap.survivor": {"maxLength": 253},
    "spec.bootstrap.static.initialCluster": {"maxItems": MOST_MEMBERS},
    "spec.bootstrap.static.initialCluster[].name": {"maxLength": LONGEST_LABEL},
    "spec.bootstrap.static.initialCluster[].host": {"maxLength": 253},
    "spec.podTemplate.metadata.annotations": {"maxProperties": 64},
    "spec.podTemplate.metadata.labels": {"maxProperties": 64},
}

# The unbuilt fields of coreos.com documents by their path below the spec, with the type each has there.
UNBUILT = {
    "backup": "object",
    "restore": "object",
    "selfHosted": "object",
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One promise about a resource.

    at: the path it stands at, as in `schema.at`; "" is the whole object.
    holds: CEL that is true for a valid object.
    message: what a user reads otherwise.
    explain: CEL that makes a better message out of the values at hand; `message` is used
    where it cannot be evaluated.
    field: a path below `at` that the error names, when it is not `at` itself.
    """

    name: str
    at: str
    holds: str
    message: str
    explain: str = ""
    field: str = ""

    def rendered(self) -> dict[str, str]:
        """The entry of `x-kubernetes-validations`."""
        entry = {"rule": self.holds, "message": self.message}
        if self.explain:
            entry["messageExpression"] = self.explain
        if self.field:
            entry["fieldPath"] = self.field
        return entry


def _name_rules(longest: int) -> tuple[Rule, ...]:
    return (
        Rule(
            name="name-length",
            at="",
            field=".metadata.name",
            holds=f"self.metadata.name.size() <= {longest}",
            message=f"must have at most {longest} characters, because the members' host names are longer "
            "than the cluster's and end at 63: choose a shorter name",
        ),
        Rule(
            name="name-form",
            at="",
            field=".metadata.name",
            holds=f"self.metadata.name.matches('{NAME_PATTERN}')",
            message="must start with a letter and have only lower-case letters, digits and '-' "
            "(no dot, no '-' at the end), because Services and host names are made of it: "
            "choose another name",
        ),
    )


SUPPORTED = (
    f"is not a version this operator can run: give 3.{OLDEST_MINOR}.0 up to 3.{NEWEST_MINOR}.x "
    "in full, like 3.6.16 or v3.6.16"
)

SUPPORTED_VERSION = Rule(
    name="version-supported",
    at="spec.version",
    holds=f"self.matches('{VERSION_PATTERN}')",
    message=f"the version {SUPPORTED}",
    explain=f"""'"' + self + '" {SUPPORTED}'""",
)


FLOORS = {6: 32, 7: 11}
"""The patch version of the minor before that must run on every member before a minor is gone to.

3.5.32 and 3.6.11: what came before can bring members back that were removed, and lose promotions.
"""


def _same_version(one: str, other: str) -> str:
    """CEL: both name the same version, a leading v aside."""
    return f"({one} == {other} || 'v' + {one} == {other} || {one} == 'v' + {other})"


_GIVEN = "(has({0}.spec) && has({0}.spec.version))"
_WANTED = "self.spec.version"


def _version_changes() -> tuple[Rule, ...]:
    """What a change of spec.version must keep to, judged from what runs and not from what was asked.

    status.currentVersion is the lowest version that any member runs; the API server carries status over
    into every edit of the spec. A cluster that has never served may be given any version.
    In CEL, `v[0]` is what runs and `v[1]` what is asked for, each as [major, minor, patch].
    """
    status = "oldSelf.?status.?currentVersion"
    base = "(oldSelf.status.currentVersion)"
    unchanged = f"({_GIVEN.format('oldSelf')} && {_same_version(_WANTED, 'oldSelf.spec.version')})"
    free = (
        f"!{_GIVEN.format('self')} || {unchanged} || {status}.orValue('') == '' || "
        f"!{_WANTED}.matches('{VERSION_PATTERN}')"
    )
    numbers = "x.replace('v', '').split('-')[0].split('.').map(n, int(n))"
    pair = f"[[{base}, {_WANTED}].map(x, {numbers})]"

    def rule(name: str, holds: str, message: str, explain: str) -> Rule:
        return Rule(
            name=name,
            at="",
            field=".spec.version",
            holds=f"{free} || {pair}.all(v, {holds})",
            message=message,
            explain=explain,
        )

    floors = (
        rule(
            f"version-floor-3-{minor}",
            f"v[0][1] != {minor - 1} || v[1][1] != {minor} || v[0][2] >= {patch}",
            f"3.{minor} needs 3.{minor - 1}.{patch} or later on every member first: put such a version here, "
            "and wait until status shows it",
            f"'3.{minor} needs 3.{minor - 1}.{patch} or later on every member first, and ' + {base} + "
            f"' runs: put 3.{minor - 1}.{patch} or later here, and wait until status shows it'",
        )
        for minor, patch in FLOORS.items()
    )
    return (
        rule(
            "version-never-down",
            "v[1][1] > v[0][1] || (v[1][1] == v[0][1] && v[1][2] >= v[0][2])",
            "etcd cannot go back to an earlier version than the one that runs: put that or a later one here",
            f"'etcd cannot go back from ' + {base} + ', which runs: put ' + {base} + "
            "' or a later version here'",
        ),
        rule(
            "version-one-minor",
            "v[1][1] <= v[0][1] + 1",
            "etcd goes up one minor version at a time: put the next one here first",
            # Not worked out of the numbers: the API server puts the cost of that beyond all bounds.
            f"'etcd goes up one minor version at a time, and ' + {base} + ' runs: put a version ' + "
            f"({base}.startsWith('3.4.') ? '3.5' : {base}.startsWith('3.5.') ? '3.6' : '3.7') + "
            "'.x here first'",
        ),
        *floors,
    )


VERSION_CHANGES = _version_changes()


def _frozen(field: str, *, changeable: str) -> Rule:
    """A rule at `spec`: `field` stays as it was when the object was made, absent or not."""
    return Rule(
        name=f"frozen-{field}",
        at="spec",
        field=f".{field}",
        holds=f"has(self.{field}) == has(oldSelf.{field}) && "
        f"(!has(self.{field}) || self.{field} == oldSelf.{field})",
        message=f"Unsupported changes: spec.{field} cannot change once the object exists, only {changeable} "
        "can: put the earlier value back",
    )


def _reserved(at: str, taken: str, what: str) -> Rule:
    """A rule at a map of strings: `taken`, CEL over a key `k`, is true for no key."""
    return Rule(
        name=f"reserved-{at.rpartition('.')[2]}",
        at=at,
        holds=f"!self.exists(k, {taken})",
        message=f"{what} reserved for the operator: remove them",
    )


def _storage_size(claim: str) -> Rule:
    return Rule(
        name="storage-size",
        at=f"{claim}.resources.requests",
        holds="!('storage' in self) || (type(self['storage']) == int ? int(self['storage']) > 0 : "
        "isQuantity(string(self['storage'])) && "
        "quantity(string(self['storage'])).isGreaterThan(quantity('0')))",
        message="storage must be more than 0: give the size of each member's volume, like 8Gi",
    )


CLAIM = "spec.storage.volumeClaimTemplate"
_PREFIXED = f"k.startsWith('{improbable.RESERVED_PREFIX}')"
_RESERVED_NAMES = (
    _reserved(
        "spec.podTemplate.metadata.annotations",
        _PREFIXED,
        f"annotations that begin with {improbable.RESERVED_PREFIX} are",
    ),
    _reserved(
        "spec.podTemplate.metadata.labels",
        f"{_PREFIXED} || k == 'app.kubernetes.io/name'",
        f"app.kubernetes.io/name and labels that begin with {improbable.RESERVED_PREFIX} are",
    ),
)

IMPROBABLE_CLUSTER = (
    *_name_rules(LONGEST_IMPROBABLE_NAME),
    SUPPORTED_VERSION,
    *VERSION_CHANGES,
    *(
        _frozen(field, changeable="spec.replicas and spec.version")
        for field in ("storage", "podTemplate", "affinity")
    ),
    _storage_size(CLAIM),
    *_RESERVED_NAMES,
    Rule(
        name="one-affinity",
        at="spec",
        holds="!has(self.affinity) || !has(self.podTemplate) || !has(self.podTemplate.affinity)",
        message="spec.affinity and spec.podTemplate.affinity mean the same: keep one of them",
    ),
)


PEERS_ARE_MADE = "EtcdPeers are made by the operator: create an EtcdCluster instead"


def _host_of(member: str) -> str:
    """CEL, at `spec` of a peer: the pattern of a host that a member of its cluster has, in any namespace."""
    return f"'^' + {member} + '\\\\.' + self.clusterName + '\\\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?\\\\.svc$'"


# A rule cannot see who writes; an admission policy does (`api.policies`). What nobody may write, the
# operator included, stands here, and works wherever the operator runs. The namespace cannot be seen
# either, nor the record of the cluster: `dialects.peers` compares with both.
PEER = (
    Rule(
        name="name-length",
        at="",
        field=".metadata.name",
        holds=f"self.metadata.name.size() <= {LONGEST_LABEL}",
        message=f"must have at most {LONGEST_LABEL} characters; {PEERS_ARE_MADE}",
    ),
    Rule(
        name="name-of-member",
        at="",
        field=".metadata.name",
        # Not one pattern with the name in it: the API server puts the cost of that beyond all bounds.
        holds="self.metadata.name.startsWith(self.spec.clusterName + '-') && "
        "self.metadata.name.substring(self.spec.clusterName.size() + 1).matches('^[0-9]+$')",
        message=f"must be that of its cluster and a number, like my-cluster-0; {PEERS_ARE_MADE}",
    ),
    Rule(
        name="cluster-name",
        at="spec.clusterName",
        holds=f"self.matches('{NAME_PATTERN}')",
        message=f"must be the name of an EtcdCluster; {PEERS_ARE_MADE}",
    ),
    Rule(
        name="token-form",
        at="spec.bootstrap.initialClusterToken",
        holds=f"self.matches('{LABEL_PATTERN}')",
        message="must have only lower-case letters, digits and '-', and be that of its cluster; "
        f"{PEERS_ARE_MADE}",
    ),
    Rule(
        name="member-hosts",
        at="spec",
        field=".bootstrap.static.initialCluster",
        holds="self.bootstrap.static.initialCluster.all(m, "
        "m.name.matches('^' + self.clusterName + '-[0-9]+$') && "
        f"m.host.matches({_host_of('m.name')}))",
        message="must have members of this cluster only, each with its own host, like "
        f"my-cluster-0.my-cluster.my-namespace.svc; {PEERS_ARE_MADE}",
    ),
    Rule(
        name="survivor-host",
        at="spec",
        field=".bootstrap.survivor",
        holds="!has(self.bootstrap.survivor) || self.bootstrap.survivor == '' || "
        f"""self.bootstrap.survivor.matches({_host_of("self.clusterName + '-[0-9]+'")})""",
        message="must be the host of a member of this cluster, like "
        f"my-cluster-0.my-cluster.my-namespace.svc; {PEERS_ARE_MADE}",
    ),
    SUPPORTED_VERSION,
    *_RESERVED_NAMES,
    *(
        _frozen(field, changeable="spec.version and spec.bootstrap")
        for field in ("clusterName", "storage", "podTemplate")
    ),
    Rule(
        name="bootstrapped-once",
        at="spec.bootstrap",
        field=".initialClusterState",
        holds="self.initialClusterState == 'Existing' || oldSelf.initialClusterState == 'New'",
        message="a peer that has started cannot be told to found a cluster again: leave it Existing",
    ),
)

COREOS_CLUSTER = (
    *_name_rules(LONGEST_COREOS_NAME),
    Rule(
        name="size-given",
        at="",
        field=".spec",
        holds="has(self.size) || self.?spec.?size.hasValue()",
        message="spec.size is missing: give the number of members, like 3",
    ),
    SUPPORTED_VERSION,
    *VERSION_CHANGES,
    *(
        Rule(
            name=f"unbuilt-{field}",
            at=".".join(("spec", *above)),
            field=f".{name}",
            holds=f"!has(self.{name})",
            message=f"spec.{field} is not supported yet: remove it",
        )
        for field in UNBUILT
        for *above, name in (field.split("."),)
    ),
)
