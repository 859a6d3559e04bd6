"""Addresses for the pods of scenarios: etcd's ports are fixed, so each process has a network of its own."""

import atexit
import socket
from functools import cache

from unit.fakes.kubelets import Addresses


@cache
def network() -> Addresses:
    """This process's own addresses, claimed at the first use and kept until the process ends."""
    return Addresses(_claimed_network())


def _claimed_network() -> str:
    """A /16 of loopback addresses that no other process uses."""
    for second in range(16, 250):
        lock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            lock.bind((f"127.{second}.255.254", 2379))
        except OSError:
            lock.close()
            continue
        atexit.register(lock.close)
        return f"127.{second}"
    raise AssertionError("no free loopback network")
