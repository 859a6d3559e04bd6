"""Reads and writes keys as a client of etcd does, and raises alarms; the operator itself never does."""

from dataclasses import dataclass

from etcd_operator.etcd import methods
from etcd_operator.etcd import rpc_pb2 as pb
from etcd_operator.etcd.client import EtcdClient
from etcd_operator.etcd.methods import Method

PUT = Method("KV", "Put", pb.PutRequest, pb.PutResponse, is_write=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyValue:
    """One key's value and the revision that wrote it."""

    value: bytes
    mod_revision: int


class KeyClient(EtcdClient):
    """Calls one endpoint, and reads and writes keys there, too."""

    def get(self, key: bytes, *, serializable: bool = False) -> KeyValue | None:
        """The key's value, or None; a serializable read needs no quorum and may be stale."""
        response = self._call(methods.RANGE, pb.RangeRequest(key=key, serializable=serializable))
        if not response.kvs:
            return None
        return KeyValue(value=response.kvs[0].value, mod_revision=response.kvs[0].mod_revision)

    def raise_alarm(self, alarm: pb.AlarmRequest) -> None:
        """What only members do."""
        self._call(methods.ALARM_LIST, alarm)

    def put(self, key: bytes, value: bytes) -> int:
        """Write a key; the revision of the write."""
        return self._call(PUT, pb.PutRequest(key=key, value=value)).header.revision
