"""etcd's alarms, raised and cleared as etcd itself and `etcdctl alarm disarm` do."""

import grpc

from e2e.support.members import Members
from etcd_operator.etcd import methods
from etcd_operator.etcd import rpc_pb2 as pb
from etcd_operator.render.urls import CLIENT_PORT, endpoint

DEADLINE = 5.0


def raise_no_space(address: str, member_id: int) -> None:
    """What a member does when its quota is used up; filling 2 GiB takes longer. Raises grpc.RpcError."""
    _raise(address, pb.AlarmRequest(action=pb.AlarmRequest.ACTIVATE, memberID=member_id, alarm=pb.NOSPACE))


def raise_corrupt(address: str, member_id: int) -> None:
    """What a leader does that finds the data of a member to differ. Raises grpc.RpcError."""
    _raise(address, pb.AlarmRequest(action=pb.AlarmRequest.ACTIVATE, memberID=member_id, alarm=pb.CORRUPT))


def _raise(address: str, alarm: pb.AlarmRequest) -> None:
    with grpc.insecure_channel(endpoint(address, CLIENT_PORT), (("grpc.enable_http_proxy", 0),)) as channel:
        call = channel.unary_unary(
            methods.ALARM_LIST.path,
            request_serializer=pb.AlarmRequest.SerializeToString,
            response_deserializer=pb.AlarmResponse.FromString,
        )
        call(alarm, timeout=DEADLINE)


def disarm(address: str) -> int:
    """Clear all alarms; how many there were."""
    with Members(deadline=DEADLINE) as members:
        client = members.client(address)
        alarms = client.alarms()
        for alarm in alarms:
            client.disarm(alarm)
    return len(alarms)
