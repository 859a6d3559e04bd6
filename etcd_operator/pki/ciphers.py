"""Which versions and cipher suites of TLS etcd can be started with.

The suites of TLS 1.3 cannot be chosen. HTTP/2, which gRPC uses, forbids all suites of TLS 1.2 but those with
ephemeral keys and authenticated encryption (RFC 9113, appendix A), and Go starts no server with a list that
lacks both suites of AES_128_GCM_SHA256 (measured in etcd 3.5, 3.6 and 3.7).
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Literal

MinVersion = Literal["TLS1.2", "TLS1.3"]
"""As `--tls-min-version` has it; etcd accepts no earlier one."""


class KeyKind(StrEnum):
    """Of the key of a server's leaf; the value is how the names of its suites begin."""

    ECDSA = "TLS_ECDHE_ECDSA_WITH_"
    RSA = "TLS_ECDHE_RSA_WITH_"


_REQUIRED = "AES_128_GCM_SHA256"
_CIPHERS = (_REQUIRED, "AES_256_GCM_SHA384", "CHACHA20_POLY1305_SHA256")

SUITES = tuple(f"{kind}{cipher}" for kind in KeyKind for cipher in _CIPHERS)
"""All that can be chosen, as Go names them."""


def refusal(suites: Sequence[str], *, min_version: MinVersion, kinds: Sequence[KeyKind]) -> str:
    """Why etcd would not start with these suites, or refuse every client; empty if it would not.

    kinds: of the keys of the members' leafs, at least one each must be served; no suites mean etcd's default.
    """
    unknown = [suite for suite in suites if suite not in SUITES]
    if not suites:
        return ""
    if min_version == "TLS1.3":
        return "cipher suites cannot be chosen for TLS 1.3: remove cipherSuites, or set minVersion to TLS1.2"
    if unknown:
        return (
            f"{unknown[0][:60]!a} is not a cipher suite of TLS 1.2 that HTTP/2 permits: "
            f"use {', '.join(SUITES)}"
        )
    if not any(suite.endswith(_REQUIRED) for suite in suites):
        return f"etcd does not start without {' or '.join(kind + _REQUIRED for kind in KeyKind)}: add one"
    for kind in kinds:
        if not any(suite.startswith(kind) for suite in suites):
            return (
                f"the members' keys are {kind.name}, and none of the cipher suites is for them: "
                f"add {kind}{_REQUIRED}"
            )
    return ""
