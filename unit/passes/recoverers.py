"""What carries out the acts of a recovery, for tests that act in the operator's place."""

from typing import Any

from etcd_operator.controllers.etcd_cluster.dialects.base import Dialect
from etcd_operator.controllers.etcd_cluster.members.protocol import Members, Scope
from etcd_operator.controllers.etcd_cluster.recovery.acts import Recoverer
from etcd_operator.controllers.etcd_cluster.recovery.proofs import RecoveryProofs
from etcd_operator.controllers.etcd_cluster.recovery.readers import Readers
from etcd_operator.etcd.channel import Channels


def recoverer(
    scope: Scope, members: Members, dialect: Dialect[Any], channels: Channels, readers: Readers
) -> Recoverer:
    proofs = RecoveryProofs(
        scope=scope, channels=channels, on_call=lambda *_: None, dialect=dialect, readers=readers
    )
    return Recoverer(scope=scope, members=members, proofs=proofs)
