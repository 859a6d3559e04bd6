"""Whether what is in a Secret of cert-manager is what was asked for, of the issuer that was asked."""

from collections.abc import Iterable, Mapping
from typing import Any

from cryptography.hazmat.primitives.serialization import Encoding

from etcd_operator.api.meta import ObjectMeta, RawObject, condition_of
from etcd_operator.api.tls import IssuerRef
from etcd_operator.controllers.etcd_cluster.decide.certificates.state import IssuedLeaf
from etcd_operator.controllers.etcd_cluster.manifests.cert_manager import fields_changed, is_as_asked
from etcd_operator.controllers.etcd_cluster.manifests.issued import Offer
from etcd_operator.controllers.shared.objects import CHANGED, Overridden
from etcd_operator.kube.views import Certificate, CertificateCondition
from etcd_operator.pki.authority import KeyPair
from etcd_operator.pki.description import described
from etcd_operator.pki.errors import BadCertificate
from etcd_operator.pki.profiles import Leaf, Usage
from etcd_operator.pki.secrets import Supplied

CERTIFICATE, NAME, KIND, GROUP = (
    f"cert-manager.io/{each}" for each in ("certificate-name", "issuer-name", "issuer-kind", "issuer-group")
)
"""Annotations of a Secret: for which Certificate cert-manager has written its content, and who has signed."""


def require_stored(listed: Mapping[str, Certificate], wanted: Iterable[RawObject]) -> None:
    """Raises Overridden if a Certificate is stored otherwise than it was just asked for."""
    for body in wanted:
        name = body["metadata"]["name"]
        changed = fields_changed(listed[name].spec, body["spec"]) if name in listed else []
        if changed:
            raise Overridden(f"Certificate {name} is stored with another {', '.join(changed)}: {CHANGED}")


def require_source(found: ObjectMeta, where: str, name: str, issuer: IssuerRef | None) -> None:
    """Raises BadCertificate if the content is of another Certificate, or of another issuer."""
    has = found.annotations
    signed_by = IssuerRef(
        name=has.get(NAME, ""),
        kind=has.get(KIND) or IssuerRef(name="").kind,
        group=has.get(GROUP) or IssuerRef(name="").group,
    )
    if has.get(CERTIFICATE, "") == name and signed_by == issuer:
        return
    raise BadCertificate(
        f"{where} is of the Certificate '{has.get(CERTIFICATE, '')[:80]}' and the {signed_by.kind[:80]} "
        f"'{signed_by.name[:80]}', and not of Certificate {name} and the issuer of this cluster: delete "
        "whatever else writes the Secret, and then the Secret, so that cert-manager issues it again"
    )


def offered(found: Supplied, file: str, leaf: Leaf, where: str, ca: Any) -> Offer:
    """Raises BadCertificate where the issuer has changed what was asked for."""
    if leaf.common_name and found.leaf.common_name != leaf.common_name:
        raise BadCertificate(
            f"{where} has the common name '{found.leaf.common_name[:64]}' instead of '{leaf.common_name}': "
            "use an issuer that keeps it"
        )
    if leaf.usage is Usage.CLIENT and found.leaf.names:
        raise BadCertificate(
            f"{where} has the names {', '.join(found.leaf.names)[:80]}, which were not asked for: members "
            "refuse peers with other names than their own; renew the Certificate, or use an issuer that adds "
            "none"
        )
    if found.leaf.is_ca:
        raise BadCertificate(f"{where} is a CA, which was not asked for: renew the Certificate")
    authority = described(ca)
    if not authority.key_id:
        raise BadCertificate(
            f"{where}: the CA {authority.subject[:80]} has no subject key identifier, by which CAs are told "
            "apart: use an issuer whose CA has one"
        )
    issued = IssuedLeaf(file=file, leaf=found.leaf, ca=authority)
    return Offer(issued=issued, pair=KeyPair(found.chain, found.key), ca=ca.public_bytes(Encoding.PEM))


def unissued(asked: Certificate | None, wanted: RawObject) -> str:
    """Why cert-manager has not issued yet what is wanted; empty if it has."""
    name = wanted["metadata"]["name"]
    if asked is None:
        return f"Certificate {name} is missing"
    if not is_as_asked(asked.spec, wanted["spec"]):
        return f"Certificate {name} asks for something else"
    if asked.is_ready:
        return ""
    ready = condition_of(asked.status.conditions, "Ready")
    if asked.failure is None and (ready is None or ready.status == "True"):
        return f"Certificate {name}: cert-manager has not looked at it yet"
    return failure(asked) or _told(name, ready)


def failure(asked: Certificate | None) -> str:
    """Why the last request to the issuer failed; empty if it did not."""
    return _told(asked.metadata.name, asked.failure) if asked is not None else ""


def _told(name: str, found: CertificateCondition | None) -> str:
    if found is None:
        return ""
    return (
        f"Certificate {name} is not ready: {found.reason}: {found.message} (see its CertificateRequests, and "
        "the issuer)"
    )
