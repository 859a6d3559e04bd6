"""The rules of `spec.tls` and `spec.auth`, as the API server applies them (see `definitions.cel`)."""

from etcd_operator.api.definitions.cel import Form, Validation
from etcd_operator.formats import DURATION_HELP, DURATION_PATTERN

OLDEST_TLS_MINOR = 5
"""Of etcd, with separate certificates for dialing members."""

EMPTY = "set peer, client or both; without TLS, remove spec.tls"
SOURCE = (
    "set one source of the certificates: auto: {}, certManager with an issuer, or secretRef with the name of "
    "a Secret"
)
ONLY_AUTO = (
    "leafDuration and caDuration are of certificates that the operator issues: remove them, or use auto: {}"
)
ONLY_OWN_CA = "caDuration is of a CA that the operator makes: remove it, the issuer has its own"
SHARED = (
    "whoever gets a certificate from a shared issuer has the access of a member, or of any client, also of "
    "root: use an Issuer that only this cluster has, or set sharedIssuer: Accepted"
)
OWN_NAMES = "extraDNSNames and extraIPs are of certificates that the operator issues: your own has its names"
SUITES_VERSION = "cipherSuites are of TLS 1.2: remove them, or the minVersion TLS1.3"
EITHER_KEY = ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256")
"""The cipher suites of which etcd requires one, for a certificate with an ECDSA key, and with an RSA key."""
ISSUED_SUITES = (
    "the operator issues certificates with ECDSA keys: choose cipher suites with ECDSA only, among them "
    f"{EITHER_KEY[0]}, which etcd requires"
)
OWN_SUITES = (
    f"add {' and '.join(EITHER_KEY)}: etcd requires one of them, and your certificate may get either key"
)
OPERATOR = (
    "set operatorSecretRef with secretRef, unless clientCertAuth is false, and only then: the operator is a "
    "client, too"
)
AUTH_ISSUES = (
    "authentication needs certificates that the operator signs: use tls.client.auto, or enabled: false"
)
NO_BACKUP_TOOL = (
    "the backup tool needs certificates that the operator signs: use tls.client.auto, or EtcdBackups "
    "instead of spec.backup"
)
STATIC = "set member.peerSecret, or member.serverSecret with operatorSecret, or all three"
ALTERNATIVES = "spec.TLS cannot be combined with tls, adopt or selfHosted: remove one of the two"
STATIC_UNCHANGED = (
    "TLS of a running cluster cannot be added, removed or changed yet: restore the earlier value, or create "
    "another cluster"
)
NOT_DISABLED = (
    "certificates that the operator does not sign cannot be left unused: remove tls.client, or use auto: {}"
)
VERSION = f"TLS requires etcd 3.{OLDEST_TLS_MINOR} or later: use a later version"
NO_ADOPTION = "a cluster with spec.tls cannot adopt another one yet: remove spec.tls"
NO_SELF_HOSTED = "a cluster with spec.tls cannot join another one yet: remove one of the two"
UNCHANGED = (
    "certificates of your own, or of cert-manager, cannot be added, removed or taken from another source "
    "once a cluster runs: "
    "restore the earlier value, or create another cluster"
)

AUTH = "authentication needs tls.client with clientCertAuth and mode Require: set these, or enabled: false"

DURATION = Form(pattern=DURATION_PATTERN, message=f"must be {DURATION_HELP}")

_BEGUN = (
    "(oldSelf.?status.?clusterID.orValue('') != '' || oldSelf.?status.?bootstrap.hasValue() || "
    "oldSelf.?status.?recovery.hasValue())"
)


# Not with `.?` and `orValue`: the API server would estimate the cost of their comparison as too high.
_NEW, _OLD = "self.spec.tls", "oldSelf.spec.tls"


def _has(side: str) -> tuple[str, str]:
    """CEL: whether a side of `spec.tls` is there, and whether it was."""
    new = f"(has(self.spec) && has({_NEW}) && has({_NEW}.{side}))"
    return new, f"(has(oldSelf.spec) && has({_OLD}) && has({_OLD}.{side}))"


def _has_same(secret: str) -> str:
    """CEL: whether a Secret below `spec.tls` was named before, and is the same."""
    new, old = f"{_NEW}.{secret}", f"{_OLD}.{secret}"
    return f"(has({new}) == has({old}) && (!has({new}) || {new}.name == {old}.name))"


def _has_same_issuer(side: str) -> str:
    """CEL: whether an issuer below `spec.tls` was named before, and is the same."""
    new, old = f"{_NEW}.{side}.certManager", f"{_OLD}.{side}.certManager"
    defaults = (("kind", "Issuer"), ("group", "cert-manager.io"))
    same = [f"{new}.issuerRef.name == {old}.issuerRef.name"] + [
        " == ".join(
            f"(has({at}.issuerRef.{field}) ? {at}.issuerRef.{field} : '{value}')" for at in (new, old)
        )
        for field, value in defaults
    ]
    return f"(has({new}) == has({old}) && (!has({new}) || ({' && '.join(same)})))"


_SAME_PEER = f"{_has_same('peer.secretRef')} && {_has_same_issuer('peer')}"
_SAME_CLIENT = " && ".join(
    (_has_same("client.secretRef"), _has_same("client.operatorSecretRef"), _has_same_issuer("client"))
)


def _changes(side: str, same: str) -> str:
    """CEL: whether a side may change: it is added and removed only where the operator signs certificates."""
    has, had = _has(side)
    return f"{has} ? ({had} ? ({same}) : has({_NEW}.{side}.auto)) : (!{had} || has({_OLD}.{side}.auto))"


_PEER, _CLIENT = _changes("peer", _SAME_PEER), _changes("client", _SAME_CLIENT)
_UNCHANGED = f"({_PEER}) && ({_CLIENT})"


_STATIC = "spec.TLS.static"
_SAME_STATIC = " && ".join(
    f"has(self.{_STATIC}.{field}) == has(oldSelf.{_STATIC}.{field}) && "
    f"(!has(self.{_STATIC}.{field}) || self.{_STATIC}.{field} == oldSelf.{_STATIC}.{field})"
    for field in ("member.peerSecret", "member.serverSecret", "operatorSecret")
)
_IS_STATIC = (
    "(has(self.spec) && has(self.spec.TLS)) == (has(oldSelf.spec) && has(oldSelf.spec.TLS)) && "
    f"(!(has(self.spec) && has(self.spec.TLS)) || ({_SAME_STATIC}))"
)


def of_tls(at: str) -> tuple[Validation, ...]:
    """The rules of the settings of TLS at this path, whatever they are for."""
    return (
        Validation(at=at, holds="has(self.peer) || has(self.client)", message=EMPTY),
        Validation(
            at=f"{at}.client",
            holds="has(self.auto) || !has(self.mode) || self.mode != 'Disabled'",
            message=NOT_DISABLED,
        ),
        Validation(
            at=f"{at}.client",
            holds="!has(self.secretRef) || !(has(self.extraDNSNames) || has(self.extraIPs))",
            message=OWN_NAMES,
        ),
        Validation(
            at=f"{at}.client",
            holds="has(self.operatorSecretRef) == "
            "(has(self.secretRef) && (!has(self.clientCertAuth) || self.clientCertAuth))",
            message=OPERATOR,
        ),
        Validation(
            at=f"{at}.client",
            holds="!has(self.cipherSuites) || !has(self.minVersion) || self.minVersion != 'TLS1.3'",
            message=SUITES_VERSION,
        ),
        Validation(
            at=f"{at}.client",
            holds="!has(self.cipherSuites) || has(self.secretRef) || "
            f"('{EITHER_KEY[0]}' in self.cipherSuites && "
            "self.cipherSuites.all(each, each.contains('_ECDSA_')))",
            message=ISSUED_SUITES,
        ),
        Validation(
            at=f"{at}.client",
            holds="!has(self.cipherSuites) || !has(self.secretRef) || ("
            + " && ".join(f"'{suite}' in self.cipherSuites" for suite in EITHER_KEY)
            + ")",
            message=OWN_SUITES,
        ),
        *(
            rule
            for side in (f"{at}.peer", f"{at}.client")
            for rule in (
                Validation(
                    at=side,
                    holds=" + ".join(
                        f"(has(self.{source}) ? 1 : 0)" for source in ("auto", "certManager", "secretRef")
                    )
                    + " == 1",
                    message=SOURCE,
                ),
                Validation(
                    at=f"{side}.certManager",
                    holds="!has(self.issuerRef.kind) || self.issuerRef.kind == 'Issuer' || "
                    "(has(self.sharedIssuer) && self.sharedIssuer == 'Accepted')",
                    message=SHARED,
                ),
                Validation(
                    at=side, holds="!has(self.certManager) || !has(self.caDuration)", message=ONLY_OWN_CA
                ),
                Validation(
                    at=side,
                    holds="!has(self.secretRef) || !(has(self.leafDuration) || has(self.caDuration))",
                    message=ONLY_AUTO,
                ),
                DURATION.rule(f"{side}.leafDuration"),
                DURATION.rule(f"{side}.caDuration"),
            )
        ),
    )


def of_auth(at: str) -> tuple[Validation, ...]:
    """The rules of the settings of authentication in the spec of a cluster, which is at this path."""
    issues = Validation(
        at=at,
        field=".auth",
        holds="!has(self.auth) || !self.auth.enabled || !has(self.tls) || !has(self.tls.client) || "
        "has(self.tls.client.auto)",
        message=AUTH_ISSUES,
    )
    needs = Validation(
        at=at,
        field=".auth",
        holds="!has(self.auth) || !self.auth.enabled || (has(self.tls) && has(self.tls.client) && "
        "(!has(self.tls.client.clientCertAuth) || self.tls.client.clientCertAuth) && "
        "(!has(self.tls.client.mode) || self.tls.client.mode == 'Require'))",
        message=AUTH,
    )
    return needs, issues


def _of_version(field: str) -> Validation:
    return Validation(
        at="spec",
        field=f".{field}",
        holds=f"!has(self.{field}) || !has(self.version) || !self.version.matches('^v?3\\\\.4\\\\.')",
        message=VERSION,
    )


TLS = (
    *of_tls("spec.tls"),
    *of_auth("spec"),
    Validation(at="spec", field=".adopt", holds="!has(self.tls) || !has(self.adopt)", message=NO_ADOPTION),
    _of_version("tls"),
    Validation(at="", field=".spec.tls", holds=f"!{_BEGUN} || ({_UNCHANGED})", message=UNCHANGED),
)

COREOS_TLS = (
    *TLS,
    Validation(
        at="spec",
        field=".tls",
        holds="!has(self.tls) || !has(self.selfHosted)",
        message=NO_SELF_HOSTED,
    ),
    Validation(
        at="spec",
        field=".backup",
        holds="!has(self.backup) || !has(self.tls) || !has(self.tls.client) || has(self.tls.client.auto)",
        message=NO_BACKUP_TOOL,
    ),
    Validation(
        at="spec",
        field=".TLS",
        holds="!has(self.TLS) || !(has(self.tls) || has(self.adopt) || has(self.selfHosted))",
        message=ALTERNATIVES,
    ),
    _of_version("TLS"),
    Validation(
        at="spec",
        field=".backup",
        holds="!has(self.backup) || !has(self.TLS) || !has(self.TLS.static.member.serverSecret)",
        message=NO_BACKUP_TOOL,
    ),
    Validation(
        at="spec.TLS.static",
        holds="(has(self.member.peerSecret) || has(self.member.serverSecret)) && "
        "has(self.member.serverSecret) == has(self.operatorSecret)",
        message=STATIC,
    ),
    Validation(at="", field=".spec.TLS", holds=f"!{_BEGUN} || {_IS_STATIC}", message=STATIC_UNCHANGED),
)
