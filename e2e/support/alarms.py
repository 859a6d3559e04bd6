"""etcd's alarms, raised and cleared as etcd itself and `etcdctl alarm disarm` do."""

import grpc

from e2e.support.members import Members
from e2e.support.waiting import answered, wait_until
from etcd_operator.controllers.shared.manifests.urls import CLIENT_PORT, endpoint
from etcd_operator.etcd import methods
from etcd_operator.etcd import rpc_pb2 as pb

DEADLINE = 10.0


def raise_no_space(address: str, member_id: int) -> None:
    """What a member does when its quota is used up; filling 2 GiB takes longer."""
    _raise(address, pb.AlarmRequest(action=pb.AlarmRequest.ACTIVATE, memberID=member_id, alarm=pb.NOSPACE))


def raise_corrupt(address: str, member_id: int) -> None:
    """What a leader does that finds the data of a member to differ."""
    _raise(address, pb.AlarmRequest(action=pb.AlarmRequest.ACTIVATE, memberID=member_id, alarm=pb.CORRUPT))


def _raise(address: str, alarm: pb.AlarmRequest) -> None:
    with grpc.insecure_channel(endpoint(address, CLIENT_PORT), (("grpc.enable_http_proxy", 0),)) as channel:
        call = channel.unary_unary(
            methods.ALARM_LIST.path,
            request_serializer=pb.AlarmRequest.SerializeToString,
            response_deserializer=pb.AlarmResponse.FromString,
        )

        def is_raised() -> bool:
            try:
                call(alarm, timeout=DEADLINE)
            except grpc.RpcError:
                return False
            return True

        wait_until(is_raised, f"{address} raises an alarm")


def disarm(address: str) -> int:
    """Clear all alarms; how many there were."""
    with Members(deadline=DEADLINE) as members:
        client = members.client(address)
        alarms = answered(client.alarms, f"{address} lists the alarms")
        for alarm in alarms:
            answered(lambda alarm=alarm: client.disarm(alarm), f"{address} clears {alarm}")  # type: ignore[misc]
    return len(alarms)
