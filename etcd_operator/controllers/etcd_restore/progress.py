"""How far the pods of restores are. They are asked on threads of their own: no pass waits for one.

Only what the status shows depends on it: a pod that cannot be reached restores all the same.
"""

from dataclasses import dataclass, field

from etcd_operator.controllers.etcd_restore.decide.plan import PROGRESS_POLL
from etcd_operator.controllers.shared.inquiries import Inquiries, PodServer
from etcd_operator.controllers.shared.manifests.restoring_job import PROGRESS_PORT
from etcd_operator.keys import Key
from etcd_operator.kube.views import Pod
from etcd_operator.pods.reports import Progress


def restore_of(slot: Key) -> Key:
    """The EtcdRestore of the pod that a question is about."""
    return Key(slot.namespace, slot.name.partition("/")[0])


@dataclass(eq=False, kw_only=True)
class ProgressReader:
    """What pods that run have last reported."""

    inquiries: Inquiries[Progress]
    _asked: dict[Key, set[Key]] = field(default_factory=dict)

    def of(self, key: Key, pod: Pod) -> Progress | None:
        """The last report of a pod of this EtcdRestore, if any; it is asked again when it is time."""
        slot = Key(key.namespace, f"{key.name}/{pod.metadata.name}")
        self._asked.setdefault(key, set()).add(slot)
        uid = pod.metadata.uid
        if pod.status.pod_ip:
            address = (pod.status.pod_ip, PROGRESS_PORT)
            # Each answer causes a pass, which asks nobody; one that the timer causes finds that it is time.
            self.inquiries.renew(
                slot, PodServer(uid=uid, owner=uid, address=address, token=""), PROGRESS_POLL / 2
            )
        return self.inquiries.last_answer(slot, uid).report

    def forget(self, key: Key) -> None:
        """The EtcdRestore has ended."""
        for slot in self._asked.pop(key, ()):
            self.inquiries.forget(slot)
