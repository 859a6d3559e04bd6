"""The Secrets with the certificates of backup tools. They are read when that is needed, not watched."""

from contextlib import suppress
from dataclasses import dataclass, field

from etcd_operator.clock import Clock
from etcd_operator.controllers.backup_tool.manifests.backup_tool import tool_name
from etcd_operator.controllers.backup_tool.manifests.certificates import leafs
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.manifests import tls
from etcd_operator.controllers.etcd_cluster.manifests.tls import Named
from etcd_operator.controllers.etcd_cluster.tls.authorities import AuthorityStore
from etcd_operator.controllers.shared.manifests.secret import replacement
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.controllers.shared.secret_reads import KEPT_SECONDS
from etcd_operator.errors import OperatorError
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.views import Secret
from etcd_operator.pki.lifetimes import renewal
from etcd_operator.pods.http_client import Trust


@dataclass(frozen=True, slots=True)
class _Current:
    leafs: tuple[Named, ...] = field(repr=False)  # that the Secret has
    until: float  # when it is read again; monotonic, for a clock that is wrong


@dataclass(eq=False, kw_only=True)
class ToolCertificates:
    """Of the clusters of `coreos.com`."""

    authorities: AuthorityStore
    clock: Clock
    _current: dict[Key, _Current] = field(default_factory=dict)
    _absent: dict[Key, str] = field(default_factory=dict)  # clusters, by UID, that have no such Secret

    def trust(self, desired: DesiredCluster) -> Trust | None:
        """How the tool is verified; None where it serves plain HTTP. Raises as `AuthorityStore.trust`."""
        return self.authorities.trust(desired, tool_name(desired.name))

    def are_current(self, desired: DesiredCluster, objects: Objects) -> bool:
        """Whether the Secret is as it should be, or none is needed.

        Raises Conflict, BadCertificate, and the errors of `Client`.
        """
        if not desired.secured.is_dialed:
            return True
        self._absent.pop(desired.key, None)
        wanted, known = self._wanted(desired), self._current.get(desired.key)
        if known is not None and known.leafs == wanted and self.clock.monotonic() < known.until:
            return True
        return self._note(desired, wanted, self._found(desired, objects))

    def keep(self, desired: DesiredCluster, objects: Objects) -> bool:
        """Write what is missing, or due; whether it was created. Raises ClockSkew, and those of `Objects`."""
        wanted, found = self._wanted(desired), self._found(desired, objects)
        if self._note(desired, wanted, found):
            return False
        body = tls.secret(desired, wanted, tool_name(desired.name), self.authorities.issuing_time())
        if found is None or found.metadata.controller_uid != desired.uid:
            return objects.create(resources.SECRETS, body)
        objects.merge(resources.SECRETS, found.metadata, replacement(found.data, body))
        return False

    def remove(self, desired: DesiredCluster, objects: Objects) -> None:
        """Nothing needs them any more."""
        is_there = desired.secured.is_dialed or self.are_unused(desired, objects)
        self.forget(desired.key)
        if is_there:
            objects.remove_of(desired.uid, resources.SECRETS, tls.secret_name(tool_name(desired.name)))

    def are_unused(self, desired: DesiredCluster, objects: Objects) -> bool:
        """Whether there is a Secret although the tool needs none: clients use TLS no more.

        It is read once, and again after an error: nothing else waits for that.
        """
        if desired.secured.is_dialed or self._absent.get(desired.key) == desired.uid:
            return False
        with suppress(OperatorError):
            found = self._found(desired, objects)
            if found is not None and found.metadata.controller_uid == desired.uid:
                return True
            self._absent[desired.key] = desired.uid
        return False

    def forget(self, key: Key) -> None:
        """Read the Secret anew the next time."""
        self._current.pop(key, None)
        self._absent.pop(key, None)

    def _wanted(self, desired: DesiredCluster) -> tuple[Named, ...]:
        return leafs(desired, self.authorities.recorded(desired))

    def _found(self, desired: DesiredCluster, objects: Objects) -> Secret | None:
        return objects.find(resources.SECRETS, tls.secret_name(tool_name(desired.name)), Secret)

    def _note(self, desired: DesiredCluster, wanted: tuple[Named, ...], found: Secret | None) -> bool:
        """Whether it is as it should be; until when that is not asked again."""
        now = self.clock.now()
        self.forget(desired.key)
        if found is None or found.metadata.controller_uid != desired.uid:
            return False
        held = tls.held(found.data, wanted, "client", now)
        if held.files is None or not tls.is_current(
            self.authorities.recorded(desired), {"client": held}, now
        ):
            return False
        left = min((renewal(held.files.leaf) - now).total_seconds(), KEPT_SECONDS)
        self._current[desired.key] = _Current(wanted, self.clock.monotonic() + left)
        return True
