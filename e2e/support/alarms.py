"""etcd's alarms, raised and cleared as etcd itself and `etcdctl alarm disarm` do."""

from e2e.support.members import Members
from e2e.support.waiting import answered
from etcd_operator.etcd import rpc_pb2 as pb

DEADLINE = 10.0


def raise_no_space(address: str, member_id: int) -> None:
    """What a member does when its quota is used up; filling 2 GiB takes longer."""
    _raise(address, pb.AlarmRequest(action=pb.AlarmRequest.ACTIVATE, memberID=member_id, alarm=pb.NOSPACE))


def raise_corrupt(address: str, member_id: int) -> None:
    """What a leader does that finds the data of a member to differ."""
    _raise(address, pb.AlarmRequest(action=pb.AlarmRequest.ACTIVATE, memberID=member_id, alarm=pb.CORRUPT))


def _raise(address: str, alarm: pb.AlarmRequest) -> None:
    with Members(deadline=DEADLINE) as members:
        answered(lambda: members.client(address).raise_alarm(alarm), f"{address} raises an alarm")


def disarm(address: str) -> int:
    """Clear all alarms; how many there were."""
    with Members(deadline=DEADLINE) as members:
        client = members.client(address)
        alarms = answered(client.alarms, f"{address} lists the alarms")
        for alarm in alarms:
            answered(lambda alarm=alarm: client.disarm(alarm), f"{address} clears {alarm}")  # type: ignore[misc]
    return len(alarms)
