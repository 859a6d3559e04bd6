"""A stand-in of cert-manager's controller: it issues what Certificates ask for.

As cert-manager does, it issues again when the spec has changed, when a certificate is due (`renewBefore`),
and when the Secret is gone; a CA that is replaced changes nothing that is issued already.
"""

import base64
import json
from datetime import timedelta

from etcd_operator.pki.authority import KeyPair, new_ca, renewed_ca
from etcd_operator.pki.description import describe
from unit.fakes.apiserver import Json
from unit.fakes.apiserver.kinds import SECRETS, custom_kind
from unit.passes.bench import Bench
from unit.pki.certificates import duration, issued, source

CERTIFICATES = custom_kind("cert-manager.io", "v1", "certificates", "Certificate")
CA_LASTS = timedelta(days=3650)


class CertManager:
    """In one world; its CA is that of every issuer, except of those in `others`."""

    def __init__(self, made: Bench) -> None:
        self._made, self._number = made, 0
        self.ca = self.new_ca()
        self.others: dict[str, KeyPair] = {}  # by the name of the issuer
        self.refusal = ""  # why nothing is issued; empty while it is
        self.refused: frozenset[str] = frozenset()  # the Certificates of which that is true; none: all
        self._due: set[str] = set()
        made.api.objects.kinds.register(CERTIFICATES)
        made.controllers.append(self.step)

    def change_ca(self) -> None:
        """The issuer gets another key: as by default, when the Certificate of its CA is renewed."""
        self.ca = self.new_ca()

    def extend_ca(self) -> None:
        """The certificate of the CA is renewed with its key."""
        self.ca = renewed_ca(self.ca, now=self._made.clock.now(), duration=2 * CA_LASTS)

    def renew(self, *names: str) -> None:
        """As `cmctl renew`; without names, all."""
        self._due |= set(names or self._made.names(CERTIFICATES))

    def step(self) -> bool:
        """Issue what is due; whether anything was written."""
        found = self._made.api.objects.select(CERTIFICATES)
        return sum(self._issue(each) if self._is_due(each) else self._see(each) for each in found) > 0

    def new_ca(self) -> KeyPair:
        """Another one."""
        self._number += 1
        return new_ca(f"issuer {self._number}", now=self._made.clock.now(), duration=CA_LASTS)

    def _is_due(self, found: Json) -> bool:
        name, spec = found["metadata"]["name"], found["spec"]
        stored = self._stored(found)
        if stored is None or name in self._due:
            return True
        if stored["metadata"]["annotations"]["asked"] != json.dumps(spec):
            return True
        leaf = describe(base64.b64decode(stored["data"]["tls.crt"]))
        return self._made.clock.now() >= leaf.not_after - duration(spec["renewBefore"])

    def _stored(self, found: Json) -> Json | None:
        secrets = self._made.api.objects.select(SECRETS, found["metadata"]["namespace"])
        return next(
            (each for each in secrets if each["metadata"]["name"] == found["spec"]["secretName"]), None
        )

    def _issue(self, found: Json) -> bool:
        if self.refusal and (not self.refused or found["metadata"]["name"] in self.refused):
            return self._report(found, _refused(self.refusal))
        spec, now = found["spec"], self._made.clock.now()
        files = issued(spec, self.others.get(spec["issuerRef"]["name"], self.ca), now)
        body = {
            "metadata": {
                "name": spec["secretName"],
                "labels": spec["secretTemplate"]["labels"],
                "annotations": {"asked": json.dumps(spec), **source(found)},
            },
            "data": {name: base64.b64encode(content).decode() for name, content in files.items()},
        }
        namespace, objects = found["metadata"]["namespace"], self._made.api.objects
        if self._stored(found) is None:
            objects.create(SECRETS, namespace, body)
        else:
            objects.patch(SECRETS, namespace, spec["secretName"], body, "merge")
        self._due.discard(found["metadata"]["name"])
        self._see(found)
        return True

    def _see(self, found: Json) -> bool:
        """Report that the Secret has what this generation asks for."""
        ready = {"type": "Ready", "status": "True", "reason": "Ready", "message": "is up to date"}
        return self._report(found, [{**ready, "observedGeneration": found["metadata"]["generation"]}])

    def _report(self, found: Json, conditions: list[Json]) -> bool:
        if found.get("status", {}).get("conditions") == conditions:
            return False
        metadata, change = found["metadata"], {"status": {"conditions": conditions}}
        self._made.api.objects.patch(
            CERTIFICATES, metadata["namespace"], metadata["name"], change, "merge", subresource="status"
        )
        return True


def _refused(why: str) -> list[Json]:
    """As of a request that failed: the certificate before, if there is one, is ready until it expires."""
    missing = {
        "type": "Ready",
        "status": "False",
        "reason": "DoesNotExist",
        "message": "Issuing certificate as Secret does not exist",
    }
    return [missing, {"type": "Issuing", "status": "False", "reason": "Failed", "message": why}]
