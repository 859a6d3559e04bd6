"""A small fake Kubernetes API server: see `server.ApiServer`."""

from unit.fakes.apiserver.faults import Answer, Cut, Exchange, Fault, Hook, OnWrite, Request, Stall, no_fault
from unit.fakes.apiserver.kinds import Json, Kind, custom_kind
from unit.fakes.apiserver.refusals import Refusal
from unit.fakes.apiserver.server import ApiServer

__all__ = [
    "Answer", "ApiServer", "Cut", "Exchange", "Fault", "Hook", "Json", "Kind", "OnWrite", "Refusal",
    "Request", "Stall", "custom_kind", "no_fault",
]  # fmt: skip
