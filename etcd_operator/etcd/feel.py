"""Asks one voter whether a quorum answers, without waiting for it.

`EtcdClient.has_quorum` for somebody who asks many clusters and cares only for those that do not answer.
"""

import time
from collections.abc import Callable
from typing import Any

import grpc

from etcd_operator.errors import Forbidden, Unavailable
from etcd_operator.etcd import methods
from etcd_operator.etcd.channel import Channels
from etcd_operator.etcd.client import OnCall, quorum_read
from etcd_operator.etcd.errors import translate


def ask_quorum(
    channels: Channels,
    endpoint: str,
    *,
    deadline: float,
    on_missing: Callable[[], None],
    on_call: OnCall,
) -> None:
    """Ask the voter at `endpoint` for a read that needs a quorum; back at once.

    `on_missing` is called on a thread of gRPC's if there is no proof within `deadline` seconds; not when the
    connections were closed meanwhile.
    """
    sent = time.monotonic()

    def ended(future: Any) -> None:
        code = future.code()
        on_call(methods.RANGE.name, code.name, time.monotonic() - sent)
        if code in (grpc.StatusCode.OK, grpc.StatusCode.CANCELLED):
            return
        error = translate(code, future.details() or "", call=f"Range at {endpoint}", is_write=False)
        if not isinstance(error, Forbidden):  # etcd confirms a read before it looks at rights
            on_missing()

    try:
        call = channels.connection(endpoint).unary(methods.RANGE)
        future = call.future(quorum_read(), timeout=deadline)
    except (Unavailable, ValueError):
        return  # closed meanwhile, by another thread
    future.add_done_callback(ended)
