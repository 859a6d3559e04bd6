"""Which cipher suites are refused."""

import pytest

from etcd_operator.pki.ciphers import SUITES, KeyKind, MinVersion, refusal

ECDSA_128, ECDSA_256, _, RSA_128, RSA_256, _ = SUITES
ECDSA, RSA = KeyKind.ECDSA, KeyKind.RSA


@pytest.mark.parametrize(
    ("suites", "min_version", "kinds", "part"),
    [
        ((), "TLS1.2", [ECDSA], ""),
        ((), "TLS1.3", [ECDSA], ""),
        (SUITES, "TLS1.2", [ECDSA, RSA], ""),
        ([ECDSA_128], "TLS1.2", [ECDSA], ""),
        ([ECDSA_256, RSA_128], "TLS1.2", [ECDSA], ""),
        ([ECDSA_128], "TLS1.3", [ECDSA], "cannot be chosen for TLS 1.3"),
        ([ECDSA_256], "TLS1.2", [ECDSA], "etcd does not start without"),
        ([RSA_128], "TLS1.2", [ECDSA], f"add {ECDSA_128}"),
        ([ECDSA_128], "TLS1.2", [ECDSA, RSA], f"add {RSA_128}"),
        ([ECDSA_128, "TLS_AES_128_GCM_SHA256"], "TLS1.2", [ECDSA], "is not a cipher suite"),
        ([ECDSA_128, "TLS_RSA_WITH_AES_128_CBC_SHA"], "TLS1.2", [ECDSA], "is not a cipher suite"),
        ([ECDSA_128, "x\n" * 99], "TLS1.2", [ECDSA], "is not a cipher suite"),
    ],
)
def test_refusal(suites: list[str], min_version: MinVersion, kinds: list[KeyKind], part: str) -> None:
    found = refusal(suites, min_version=min_version, kinds=kinds)
    assert part in found
    assert bool(found) is bool(part)
    assert found == "" or found.isprintable()
