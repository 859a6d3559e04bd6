"""The gRPC face of the fake etcd: one server per running member."""

import hashlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import grpc

from e2e.support.keys import PUT
from etcd_operator.etcd import methods
from etcd_operator.etcd import rpc_pb2 as pb
from unit.fakes.etcd.auth import alarms, identity, reads, writes
from unit.fakes.etcd.auth_rpc import AUTH_CALLS
from unit.fakes.etcd.calls import Call, always
from unit.fakes.etcd.dual_port import DualPort
from unit.fakes.etcd.member import FakeMember
from unit.fakes.etcd.refusals import Refusal

if TYPE_CHECKING:
    from unit.fakes.etcd.cluster import FakeEtcdCluster

_CHUNK = 32 * 1024


def open_server(
    cluster: "FakeEtcdCluster", member: FakeMember, address: str, executor: ThreadPoolExecutor
) -> tuple[grpc.Server, int]:
    """Serve `member` at `address`; the server and its port."""
    server = grpc.server(executor, options=[("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers(_handlers(cluster, member))
    credentials = member.credentials or cluster.credentials
    if credentials and member.has_dual_port:
        ports = server.add_insecure_port("127.0.0.1:0"), server.add_secure_port("127.0.0.1:0", credentials)
        plain, tls = (f"127.0.0.1:{each}" for each in ports)
        member.dual_port = DualPort(address, plain=plain, tls=tls)
        port = member.dual_port.port
    elif credentials:
        port = server.add_secure_port(address, credentials)
    else:
        port = server.add_insecure_port(address)
    server.start()
    return server, port


class Answers:
    """The replies of one member."""

    def __init__(self, cluster: "FakeEtcdCluster", member: FakeMember) -> None:
        self.cluster = cluster
        self.member = member

    def header(self) -> pb.ResponseHeader:
        cluster = self.cluster
        return pb.ResponseHeader(
            cluster_id=cluster.cluster_id,
            member_id=self.member.id,
            revision=cluster.revision - self.member.lags,
            raft_term=cluster.term,
        )

    def members(self) -> list[pb.Member]:
        return [_message(member) for member in self.cluster.members]

    def status(self, _request: pb.StatusRequest) -> pb.StatusResponse:
        cluster, member = self.cluster, self.member
        cluster.changed.wait_for(lambda: member.server is None, timeout=member.status_takes)
        errors = [f"memberID:{member_id} alarm:{kind} " for member_id, kind in sorted(cluster.alarms)]
        if cluster.leader is None:
            errors.append("etcdserver: no leader")
        index = cluster.raft_index - member.lags if member.is_in_sync else 0
        applied = member.frozen_index if member.snapshot_index == cluster.raft_index else index
        return pb.StatusResponse(
            header=self.header(),
            version=member.version,
            leader=cluster.leader.id if cluster.leader is not None else 0,
            raftIndex=index,
            raftAppliedIndex=applied,
            dbSize=member.db_size,
            isLearner=member.is_learner,
            errors=errors,
        )

    def member_list(self, _request: pb.MemberListRequest) -> pb.MemberListResponse:
        return pb.MemberListResponse(header=self.header(), members=self.members())

    def member_add(self, request: pb.MemberAddRequest) -> pb.MemberAddResponse:
        added = self.cluster.add(self.member, tuple(request.peerURLs), is_learner=request.isLearner)
        return pb.MemberAddResponse(header=self.header(), member=_message(added), members=self.members())

    def member_remove(self, request: pb.MemberRemoveRequest) -> pb.MemberRemoveResponse:
        self.cluster.remove(self.member, request.ID)
        return pb.MemberRemoveResponse(header=self.header(), members=self.members())

    def member_promote(self, request: pb.MemberPromoteRequest) -> pb.MemberPromoteResponse:
        self.cluster.promote(request.ID)
        return pb.MemberPromoteResponse(header=self.header(), members=self.members())

    def member_update(self, request: pb.MemberUpdateRequest) -> pb.MemberUpdateResponse:
        self.cluster.readdress(request.ID, tuple(request.peerURLs))
        return pb.MemberUpdateResponse(header=self.header(), members=self.members())

    def move_leader(self, request: pb.MoveLeaderRequest) -> pb.MoveLeaderResponse:
        self.cluster.move_leader(self.member, request.targetID)
        return pb.MoveLeaderResponse(header=self.header())

    def alarm(self, request: pb.AlarmRequest) -> pb.AlarmResponse:
        self.cluster.raft_index += 1  # etcd takes even the question through the log
        alarm = (request.memberID, pb.AlarmType.Name(request.alarm))
        if request.action == pb.AlarmRequest.ACTIVATE:
            self.cluster.alarms.add(alarm)
        elif request.action == pb.AlarmRequest.DEACTIVATE:
            self.cluster.alarms.discard(alarm)
        alarms = [
            pb.AlarmMember(memberID=member_id, alarm=kind) for member_id, kind in sorted(self.cluster.alarms)
        ]
        return pb.AlarmResponse(header=self.header(), alarms=alarms)

    def hash_kv(self, request: pb.HashKVRequest) -> pb.HashKVResponse:
        revision = request.revision or self.cluster.revision
        if revision > self.cluster.revision:
            text = "etcdserver: mvcc: required revision is a future revision"
            raise Refusal(grpc.StatusCode.OUT_OF_RANGE, text)
        own = self.member.hash
        value = own if own is not None else int(hashlib.sha256(self._data(revision)).hexdigest()[:8], 16)
        return pb.HashKVResponse(
            header=self.header(), hash=value, compact_revision=-1, hash_revision=revision
        )

    def range(self, request: pb.RangeRequest) -> pb.RangeResponse:
        found = self.cluster.keys.get(request.key)
        if found is None:
            return pb.RangeResponse(header=self.header())
        kvs = (
            []
            if request.count_only
            else [pb.KeyValue(key=request.key, value=found[0], mod_revision=found[1])]
        )
        return pb.RangeResponse(header=self.header(), kvs=kvs, count=1)

    def put(self, request: pb.PutRequest) -> pb.PutResponse:
        if any(kind == "CORRUPT" for _, kind in self.cluster.alarms):
            raise Refusal(grpc.StatusCode.DATA_LOSS, "etcdserver: corrupt cluster")
        self.cluster.put(request.key, request.value)
        return pb.PutResponse(header=self.header())

    def snapshot(self, _request: pb.SnapshotRequest) -> Iterator[pb.SnapshotResponse]:
        data = self._data(self.cluster.revision)
        data += bytes(-len(data) % 512)
        data += hashlib.sha256(data).digest()
        if self.cluster.damage is not None:
            data = self.cluster.damage(data)
        return self._stream(data)

    def _stream(self, data: bytes) -> Iterator[pb.SnapshotResponse]:
        for index, at in enumerate(range(0, len(data), _CHUNK)):
            if self.cluster.on_chunk is not None:
                self.cluster.on_chunk(index)
            yield pb.SnapshotResponse(blob=data[at : at + _CHUNK])

    def _data(self, revision: int) -> bytes:
        """All keys up to a revision; of those that were written again since, nothing earlier is known."""
        keys = self.cluster.keys.items()
        return repr(sorted((key, value) for key, value in keys if value[1] <= revision)).encode()


_CALLS = (
    Call(methods.STATUS, Answers.status, learner_may=always, may_call=identity),
    Call(
        methods.MEMBER_LIST,
        Answers.member_list,
        needs_quorum=lambda request: request.linearizable,
        may_call=identity,
    ),
    Call(methods.MEMBER_ADD, Answers.member_add),
    Call(methods.MEMBER_REMOVE, Answers.member_remove, needs_quorum=always),
    Call(methods.MEMBER_PROMOTE, Answers.member_promote, needs_quorum=always, is_forwarded=True),
    Call(methods.MEMBER_UPDATE, Answers.member_update, needs_quorum=always),
    Call(methods.MOVE_LEADER, Answers.move_leader),
    Call(methods.ALARM_LIST, Answers.alarm, needs_quorum=always, is_logged=True, may_call=alarms),
    Call(methods.HASH_KV, Answers.hash_kv),
    Call(
        methods.RANGE,
        Answers.range,
        needs_quorum=lambda request: not request.serializable,
        learner_may=lambda request: request.serializable,
        may_call=reads,
    ),
    Call(PUT, Answers.put, needs_quorum=always, is_logged=True, may_call=writes),
    Call(methods.SNAPSHOT, Answers.snapshot, learner_may=always),
    *AUTH_CALLS,
)


def _handlers(cluster: "FakeEtcdCluster", member: FakeMember) -> tuple[grpc.GenericRpcHandler, ...]:
    answers = Answers(cluster, member)
    services: dict[str, dict[str, grpc.RpcMethodHandler[Any, Any]]] = {}
    for call in _CALLS:
        is_stream = call.method is methods.SNAPSHOT
        make = grpc.unary_stream_rpc_method_handler if is_stream else grpc.unary_unary_rpc_method_handler
        services.setdefault(call.method.service, {})[call.method.name] = make(
            _behaviour(call, answers),
            request_deserializer=call.method.request.FromString,
            response_serializer=call.method.response.SerializeToString,
        )
    return tuple(
        grpc.method_handlers_generic_handler(f"etcdserverpb.{service}", handlers)
        for service, handlers in services.items()
    )


def _behaviour(call: Call, answers: Answers) -> Callable[[Any, grpc.ServicerContext], Any]:
    def behave(request: Any, context: grpc.ServicerContext) -> Any:
        with answers.cluster.changed:
            try:
                _await_turn(call, answers, request, context)
                _check_caller(call, answers, request, context)
                return _answer(call, answers, request)
            except Refusal as refusal:
                context.abort(refusal.code, refusal.text)

    return behave


def _await_turn(call: Call, answers: Answers, request: Any, context: grpc.ServicerContext) -> None:
    """Hang while the member answers nothing or lacks a quorum that it needs; refuse what it may not."""
    cluster, member = answers.cluster, answers.member

    def wake() -> None:
        with cluster.changed:
            cluster.changed.notify_all()

    context.add_callback(wake)
    _await(cluster, context, lambda: member.is_answering)
    if member.is_learner and not call.learner_may(request):
        text = "etcdserver: rpc not supported for learner"
        raise Refusal(grpc.StatusCode.FAILED_PRECONDITION, text)
    if call.needs_quorum(request):
        _await(cluster, context, lambda: cluster.has_quorum)
    if not context.is_active():
        raise Refusal(grpc.StatusCode.CANCELLED, "the caller has hung up")
    if call.is_logged and member.snapshot_index == cluster.raft_index:
        raise Refusal(grpc.StatusCode.UNKNOWN, "etcdserver: too many requests")


def _check_caller(call: Call, answers: Answers, request: Any, context: grpc.ServicerContext) -> None:
    """Refuse who may not call, and hang where etcd tries for ever."""
    cluster, auth = answers.cluster, answers.cluster.auth
    if not auth.is_enabled or call.may_call is None:
        return
    caller = auth.caller(context)
    call.may_call(auth, answers.member, request, caller)
    if call.is_forwarded and caller.is_by_certificate and answers.member is not cluster.leader:
        _await(cluster, context, lambda: False)
        raise Refusal(grpc.StatusCode.CANCELLED, "the caller has hung up")


def _await(cluster: "FakeEtcdCluster", context: grpc.ServicerContext, can_answer: Callable[[], bool]) -> None:
    """Until it can answer or the caller has hung up; where nobody is to wait, the caller's time is over."""
    if not (cluster.hangs or can_answer()):
        raise Refusal(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded")
    cluster.changed.wait_for(lambda: can_answer() or not context.is_active())


def _answer(call: Call, answers: Answers, request: Any) -> Any:
    cluster = answers.cluster
    is_write = call.method.is_write or (isinstance(request, pb.AlarmRequest) and bool(request.action))
    if is_write and cluster.on_write is not None:
        cluster.on_write(call.method.name, False)
    response = call.answer(answers, request)
    if is_write:
        cluster.writes.append(call.method.name)
        if cluster.on_write is not None:
            cluster.on_write(call.method.name, True)
    return response


def _message(member: FakeMember) -> pb.Member:
    return pb.Member(
        ID=member.id,
        name=member.name,
        peerURLs=member.peer_urls,
        isLearner=member.is_learner,
    )
