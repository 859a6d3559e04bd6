"""`spec.tls` of EtcdClusters that is refused."""

from collections.abc import Iterator
from typing import Any

from unit.api.contract.case import ABSENT, EPHEMERAL, Case, Manifest, changed

BOTH: dict[str, Any] = {"peer": {"auto": {}}, "client": {"auto": {}}}
_UNCHANGED = (
    "spec.tls: Invalid value: certificates of your own, or of cert-manager, cannot be added, removed or "
    "taken from another source once a cluster runs: restore the earlier value, or create another cluster"
)
SOURCE = (
    "set one source of the certificates: auto: {}, certManager with an issuer, or secretRef with the name of "
    "a Secret"
)
ONLY_OWN_CA = "caDuration is of a CA that the operator makes: remove it, the issuer has its own"
SHARED = (
    "whoever gets a certificate from a shared issuer has the access of a member, or of any client, also of "
    "root: use an Issuer that only this cluster has, or set sharedIssuer: Accepted"
)
ONLY_AUTO = (
    "leafDuration and caDuration are of certificates that the operator issues: remove them, or use auto: {}"
)
NOT_DISABLED = (
    "certificates that the operator does not sign cannot be left unused: remove tls.client, or use auto: {}"
)
OWN_NAMES = "extraDNSNames and extraIPs are of certificates that the operator issues: your own has its names"
OPERATOR = (
    "set operatorSecretRef with secretRef, unless clientCertAuth is false, and only then: the operator is a "
    "client, too"
)
AUTH_ISSUES = (
    "authentication needs certificates that the operator signs: use tls.client.auto, or enabled: false"
)
EITHER_KEY = ["TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"]
SUITES_VERSION = "cipherSuites are of TLS 1.2: remove them, or the minVersion TLS1.3"
ISSUED_SUITES = (
    "the operator issues certificates with ECDSA keys: choose cipher suites with ECDSA only, among them "
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, which etcd requires"
)
OWN_SUITES = (
    "add TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 and TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256: etcd requires "
    "one of them, and your certificate may get either key"
)
ISSUED: dict[str, Any] = {"certManager": {"issuerRef": {"name": "ours"}}}
OWN_CLIENT: dict[str, Any] = {"secretRef": {"name": "own"}, "operatorSecretRef": {"name": "operator"}}
_MODES = 'spec.tls.client.mode: Unsupported value: "Off": supported values: "Disabled", "Prefer", "Require"'
DURATION = "must be numbers with the units w, d, h, m and s, like 30d or 1d12h"


OF_ISSUERS: tuple[tuple[str, dict[str, Any], str, str], ...] = (
    ("auto", {"auto": {}}, "", SOURCE),
    ("caDuration", {"caDuration": "3650d"}, "", ONLY_OWN_CA),
    (
        "a ClusterIssuer",
        {"certManager": {"issuerRef": {"name": "all", "kind": "ClusterIssuer"}}},
        ".certManager",
        SHARED,
    ),
)
"""What is set beside, or in the place of, `ISSUED`; where it is refused, and why."""


def _of_issuers(
    plain: Manifest, secured: Manifest, issued: Manifest
) -> Iterator[tuple[str, Manifest, dict[str, Any]]]:
    """Changes from and to an issuer of cert-manager."""
    shared = {"issuerRef": {"name": "ours", "kind": "ClusterIssuer"}, "sharedIssuer": "Accepted"}
    for side in BOTH:
        at = f"spec/tls/{side}"
        yield f"tls.{side}.certManager, after auto", secured, {at: ISSUED}
        yield f"tls.{side}.auto, after certManager", issued, {at: {"auto": {}}}
        yield f"tls.{side}.certManager of a running cluster", plain, {"spec/tls": {side: ISSUED}}
        yield f"another issuer of tls.{side}", issued, {f"{at}/certManager/issuerRef/name": "other"}
        yield f"an issuer of another kind of tls.{side}", issued, {f"{at}/certManager": shared}


def tls(base: Manifest) -> tuple[Case, ...]:
    """For a resource of either group."""
    plain = changed(base, {"status/clusterID": "ada"})
    secured = changed(plain, {"spec/tls": BOTH})
    own = changed(plain, {"spec/tls": {"client": OWN_CLIENT}})
    supplied = changed(plain, {"spec/tls": {"peer": {"secretRef": {"name": "own"}}}})
    issued = changed(plain, {"spec/tls": {"peer": ISSUED, "client": ISSUED}})
    texts: tuple[tuple[str, Any, str], ...] = (
        ("tls: {}", {}, "spec.tls: Invalid value: set peer, client or both; without TLS, remove spec.tls"),
        (
            "tls.peer: {}",
            {"peer": {}},
            f"spec.tls.peer: Invalid value: {SOURCE}",
        ),
        (
            "tls.client: {}",
            {"client": {}},
            f"spec.tls.client: Invalid value: {SOURCE}",
        ),
        (
            "tls.peer with two sources",
            {"peer": {"auto": {}, "secretRef": {"name": "own"}}},
            f"spec.tls.peer: Invalid value: {SOURCE}",
        ),
        (
            "tls.client.secretRef alone",
            {"client": {"secretRef": {"name": "own"}}},
            f"spec.tls.client: Invalid value: {OPERATOR}",
        ),
        (
            "tls.client.operatorSecretRef with auto",
            {"client": {"auto": {}, "operatorSecretRef": {"name": "operator"}}},
            f"spec.tls.client: Invalid value: {OPERATOR}",
        ),
        (
            "tls.client.operatorSecretRef without clientCertAuth",
            {"client": {**OWN_CLIENT, "clientCertAuth": False}},
            f"spec.tls.client: Invalid value: {OPERATOR}",
        ),
        (
            "tls.client.secretRef with the mode Disabled",
            {"client": {**OWN_CLIENT, "mode": "Disabled"}},
            f"spec.tls.client: Invalid value: {NOT_DISABLED}",
        ),
        (
            "tls.client.certManager with the mode Disabled",
            {"client": {**ISSUED, "mode": "Disabled"}},
            f"spec.tls.client: Invalid value: {NOT_DISABLED}",
        ),
        *(
            (
                f"tls.{side}.certManager with {what}",
                {side: {**ISSUED, **more}},
                f"spec.tls.{side}{field}: Invalid value: {message}",
            )
            for side in BOTH
            for what, more, field, message in OF_ISSUERS
        ),
        (
            "tls.client.secretRef with extraDNSNames",
            {"client": {**OWN_CLIENT, "extraDNSNames": ["etcd.example.com"]}},
            f"spec.tls.client: Invalid value: {OWN_NAMES}",
        ),
        *(
            (
                f"tls.{side}.secretRef with {field}",
                {side: {"secretRef": {"name": "own"}, field: "90d"}},
                f"spec.tls.{side}: Invalid value: {ONLY_AUTO}",
            )
            for side in BOTH
            for field in ("leafDuration", "caDuration")
        ),
        *(
            (
                f"tls.{side}.{field}: forever",
                {side: {"auto": {}, field: "forever"}},
                f'spec.tls.{side}.{field}: Invalid value: "forever": {DURATION}',
            )
            for side in BOTH
            for field in ("leafDuration", "caDuration")
        ),
        (
            "tls.client.minVersion: TLS1.1",
            {"client": {"auto": {}, "minVersion": "TLS1.1"}},
            'spec.tls.client.minVersion: Unsupported value: "TLS1.1": supported values: "TLS1.2", "TLS1.3"',
        ),
        (
            "tls.client.cipherSuites of TLS 1.2 with minVersion: TLS1.3",
            {"client": {"auto": {}, "minVersion": "TLS1.3", "cipherSuites": EITHER_KEY[:1]}},
            f"spec.tls.client: Invalid value: {SUITES_VERSION}",
        ),
        *(
            (
                f"tls.client.cipherSuites {what}",
                {"client": {"auto": {}, "cipherSuites": suites}},
                f"spec.tls.client: Invalid value: {ISSUED_SUITES}",
            )
            for what, suites in (
                ("with auto: RSA only", EITHER_KEY[1:]),
                ("with auto: RSA and ECDSA", EITHER_KEY),
                ("that etcd refuses", ["TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"]),
                ("without any", []),
            )
        ),
        *(
            (
                f"tls.client.cipherSuites with secretRef: {kind} only",
                {"client": {**OWN_CLIENT, "cipherSuites": [suite]}},
                f"spec.tls.client: Invalid value: {OWN_SUITES}",
            )
            for kind, suite in zip(("ECDSA", "RSA"), EITHER_KEY, strict=True)
        ),
        *(
            (
                f"tls.client.cipherSuites: {suite}",
                {"client": {"auto": {}, "cipherSuites": [EITHER_KEY[0], suite]}},
                f'spec.tls.client.cipherSuites[1]: Unsupported value: "{suite}"',
            )
            for suite in ("TLS_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA")
        ),
        (
            "tls.client.mode: Off",
            {"client": {"auto": {}, "mode": "Off"}},
            _MODES,
        ),
    )
    edits: tuple[tuple[str, Manifest, dict[str, Any]], ...] = (
        ("tls.peer.secretRef of a running cluster", plain, {"spec/tls": supplied["spec"]["tls"]}),
        ("no tls, after tls.peer.secretRef", supplied, {"spec/tls": ABSENT}),
        ("tls without peer, after tls.peer.secretRef", supplied, {"spec/tls": {"client": {"auto": {}}}}),
        (
            "clientCertAuth: false, with tls.client.secretRef of a running cluster",
            own,
            {"spec/tls/client": {"secretRef": {"name": "own"}, "clientCertAuth": False}},
        ),
        (
            "tls.peer.secretRef, after auto",
            secured,
            {"spec/tls/peer": {"secretRef": {"name": "own"}}},
        ),
        ("tls.client.secretRef of a running cluster", plain, {"spec/tls": {"client": OWN_CLIENT}}),
        ("no tls, after tls.client.secretRef", own, {"spec/tls": ABSENT}),
        ("another tls.client.secretRef", own, {"spec/tls/client/secretRef/name": "other"}),
        ("another tls.client.operatorSecretRef", own, {"spec/tls/client/operatorSecretRef/name": "other"}),
        ("another tls.peer.secretRef", supplied, {"spec/tls/peer/secretRef/name": "other"}),
        *_of_issuers(plain, secured, issued),
        ("no tls, after certManager", issued, {"spec/tls": ABSENT}),
    )
    return (
        *(
            Case(typed=typed, base=base, changes={"spec/tls": value}, sees=sees)
            for typed, value, sees in texts
        ),
        *(
            Case(typed=typed, base=old, changes=changes, edits=True, sees=_UNCHANGED)
            for typed, old, changes in edits
        ),
        Case(
            typed="tls of etcd 3.4",
            base=base,
            changes={"spec/tls": BOTH, "spec/version": "3.4.37"},
            sees="spec.tls: Invalid value: TLS requires etcd 3.5 or later: use a later version",
        ),
        *(
            Case(
                typed=f"auth without {what}",
                base=base,
                changes={**changes, "spec/auth": {"enabled": True}},
                sees="spec.auth: Invalid value: authentication needs tls.client with clientCertAuth and "
                "mode Require: set these, or enabled: false",
            )
            for what, changes in (
                ("tls", {}),
                ("tls.client", {"spec/tls": {"peer": {"auto": {}}}}),
                ("clientCertAuth", {"spec/tls": {"client": {"auto": {}, "clientCertAuth": False}}}),
                ("mode Require", {"spec/tls": {"client": {"auto": {}, "mode": "Prefer"}}}),
            )
        ),
        *(
            Case(
                typed=f"auth with tls.client.{source}",
                base=base,
                changes={"spec/tls": {"client": client}, "spec/auth": {"enabled": True}},
                sees=f"spec.auth: Invalid value: {AUTH_ISSUES}",
            )
            for source, client in (("secretRef", OWN_CLIENT), ("certManager", ISSUED))
        ),
        Case(
            typed="tls with adopt",
            base=base,
            changes={"spec/tls": BOTH, "spec/adopt": {"endpoints": ["http://old-0.old.ns.svc:2379"]}},
            sees="spec.adopt: Invalid value: a cluster with spec.tls cannot adopt another one yet: remove "
            "spec.tls",
        ),
    )


STATIC = "set member.peerSecret, or member.serverSecret with operatorSecret, or all three"
OWN_STATIC: dict[str, Any] = {
    "static": {"member": {"peerSecret": "p", "serverSecret": "s"}, "operatorSecret": "o"},
}
_RUNNING = changed(EPHEMERAL, {"status/clusterID": "ada", "spec/TLS": OWN_STATIC})
_ALTERNATIVES = "spec.TLS cannot be combined with tls, adopt or selfHosted: remove one of the two"

COREOS_TLS_CASES = (
    Case(
        typed="TLS: {}",
        base=EPHEMERAL,
        changes={"spec/TLS": {}},
        sees="spec.TLS.static: Required value",
    ),
    *(
        Case(
            typed=f"TLS.static with {what}",
            base=EPHEMERAL,
            changes={"spec/TLS": {"static": static}},
            sees=f"spec.TLS.static: Invalid value: {STATIC}",
        )
        for what, static in (
            ("no Secret", {"member": {}}),
            ("serverSecret alone", {"member": {"serverSecret": "s"}}),
            ("operatorSecret alone", {"member": {"peerSecret": "p"}, "operatorSecret": "o"}),
        )
    ),
    Case(
        typed="TLS with tls",
        base=EPHEMERAL,
        changes={"spec/TLS": OWN_STATIC, "spec/tls": BOTH},
        sees=f"spec.TLS: Invalid value: {_ALTERNATIVES}",
    ),
    Case(
        typed="TLS of etcd 3.4",
        base=EPHEMERAL,
        changes={"spec/TLS": OWN_STATIC, "spec/version": "3.4.37"},
        sees="spec.TLS: Invalid value: TLS requires etcd 3.5 or later: use a later version",
    ),
    *(
        Case(
            typed=f"{what} of a running cluster",
            base=_RUNNING,
            changes=changes,
            edits=True,
            sees="spec.TLS: Invalid value: TLS of a running cluster cannot be added, removed or changed yet: "
            "restore the earlier value, or create another cluster",
        )
        for what, changes in (
            ("no TLS", {"spec/TLS": ABSENT}),
            ("another TLS.static.operatorSecret", {"spec/TLS/static/operatorSecret": "x"}),
            ("another TLS.static.member.peerSecret", {"spec/TLS/static/member/peerSecret": "x"}),
        )
    ),
    Case(
        typed="backup with TLS.static.member.serverSecret",
        base=EPHEMERAL,
        changes={"spec/TLS": OWN_STATIC, "spec/backup": {"maxBackups": 3}},
        sees="spec.backup: Invalid value: the backup tool needs certificates that the operator signs: use "
        "tls.client.auto, or EtcdBackups instead of spec.backup",
    ),
    *(
        Case(
            typed=f"backup with tls.client.{source}",
            base=EPHEMERAL,
            changes={"spec/tls": {"client": client}, "spec/backup": {"maxBackups": 3}},
            sees="spec.backup: Invalid value: the backup tool needs certificates that the operator signs: "
            "use tls.client.auto, or EtcdBackups instead of spec.backup",
        )
        for source, client in (("secretRef", OWN_CLIENT), ("certManager", ISSUED))
    ),
    Case(
        typed="tls with selfHosted",
        base=EPHEMERAL,
        changes={
            "spec/tls": BOTH,
            "spec/selfHosted": {"bootMemberClientEndpoint": "http://old-0.old.ns.svc:2379"},
        },
        sees="spec.tls: Invalid value: a cluster with spec.tls cannot join another one yet: remove one of "
        "the two",
    ),
)
