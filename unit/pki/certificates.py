"""What cert-manager makes of the spec of a Certificate, for its stand-ins."""

import re
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import Any

from etcd_operator.pki.authority import KeyPair, issue
from etcd_operator.pki.names import Names
from etcd_operator.pki.profiles import Leaf, Usage


def issued(spec: dict[str, Any], ca: KeyPair, now: datetime) -> dict[str, bytes]:
    """The files of its Secret, signed by a CA."""
    pair = issue(ca, _leaf(spec), now=now, duration=duration(spec["duration"]))
    return {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": ca.certificate}


def source(certificate: dict[str, Any]) -> dict[str, str]:
    """The annotations of its Secret: what its content was issued for."""
    issuer = certificate["spec"]["issuerRef"]
    return {
        "cert-manager.io/certificate-name": certificate["metadata"]["name"],
        **{f"cert-manager.io/issuer-{part}": issuer[part] for part in ("name", "kind", "group")},
    }


def duration(text: str) -> timedelta:
    """In the form that the operator writes, which is that of Go."""
    hours, minutes, seconds = map(int, re.findall(r"\d+", text))
    return timedelta(hours=hours, minutes=minutes, seconds=seconds)


def _leaf(spec: dict[str, Any]) -> Leaf:
    names = Names(
        dns=tuple(spec.get("dnsNames", ())), addresses=tuple(map(ip_address, spec.get("ipAddresses", ())))
    )
    return Leaf(
        usage=Usage.SERVER if "server auth" in spec["usages"] else Usage.CLIENT,
        common_name=spec.get("commonName", ""),
        organization=spec.get("subject", {}).get("organizations", [""])[0],
        names=names,
    )
