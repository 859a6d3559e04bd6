"""The threads on which clusters are probed: those that are slow delay none that answer."""

from concurrent.futures import ThreadPoolExecutor
from enum import Enum


class Lane(Enum):
    """Threads that probes share with others like them; the value is how many.

    QUICK: each first request, for `prober.PATIENCE` at most. CONFIRM: requests with the whole deadline.
    SILENT: clusters that have had no quorum for long; three hundred are each probed every ten seconds.
    """

    QUICK = 48
    CONFIRM = 64
    SILENT = 16

    def threads(self) -> ThreadPoolExecutor:
        """Its threads, none of which is started yet."""
        return ThreadPoolExecutor(self.value, thread_name_prefix=f"prober-{self.name.lower()}")
