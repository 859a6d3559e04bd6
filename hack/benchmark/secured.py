"""What TLS costs the operator, against the same clusters without TLS.

Clients may do without TLS here (`Prefer`), so that both sides are measured by the same client; the operator
and the members use it.
"""

from collections.abc import Callable, Iterator
from statistics import median

from benchmark.bed import Bed
from benchmark.creation import DOCUMENTS, operator_seconds
from benchmark.load import AT_REST, rest_of
from benchmark.verdict import Verdict, median_of

TLS = {"tls": {"peer": {"auto": {}}, "client": {"auto": {}, "mode": "Prefer"}}}
REST_BUDGET = 1.3


def with_tls(bed: Bed, runs: int, progress: Callable[[str], None]) -> Iterator[Verdict]:
    """(f): clusters are created with TLS and without, in turn; ten of each rest for two minutes."""
    for group, document in DOCUMENTS.items():
        plain, secured = [], []
        for run in range(runs):
            plain.append(operator_seconds(bed, document()))
            secured.append(operator_seconds(bed, document(**TLS)))
            progress(f"{group} run {run + 1}: plain {plain[-1]:.2f} s, TLS {secured[-1]:.2f} s")
        yield median_of(f"{group}: plain", plain)
        yield median_of(f"{group}: TLS", secured)
        yield Verdict(name=f"{group}: TLS / plain", value=median(secured) / median(plain))
    without, beside = rest_of(bed, progress), rest_of(bed, progress, **TLS)
    rest = f"{AT_REST} clusters at rest"
    note = f"{beside.cpu_percent:.2f} and {without.cpu_percent:.2f} % of a core"
    cost = beside.cpu_percent / without.cpu_percent
    yield Verdict(name=f"{rest}: CPU, TLS / plain", value=cost, at_most=REST_BUDGET, note=note)
    writes = len(beside.writes) + len(beside.events)
    yield Verdict(name=f"{rest} with TLS: API writes", value=writes, at_most=0)
    yield Verdict(name=f"{rest} with TLS: LISTs", value=len(beside.lists), at_most=0)
    yield Verdict(name=f"{rest} with TLS: memory", value=beside.memory_mib, unit="MiB")
