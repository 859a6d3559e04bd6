"""The etcd API over gRPC: the only package that uses gRPC.

Nothing above this package sees a gRPC code or a protobuf message.
"""
