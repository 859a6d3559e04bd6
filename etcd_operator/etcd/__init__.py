"""The etcd API over gRPC: the only package that uses gRPC.

    methods  the calls of etcd's v3 API that the operator uses (rpc.proto)
    channel  connections: one per endpoint, kept open while they work
    values   etcd's replies as frozen values
    client   one member, one call at a time, each with a time limit
    probe    all members of a cluster at once, within one deadline
    silence  the time limit of a stream
    errors   etcd's refusals as our errors

Nothing above this package sees a gRPC code or a protobuf message.
"""
