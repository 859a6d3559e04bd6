"""Random tests give the same answer each time: the same examples on every machine.

New examples are a command of their own, `hack/test --explore` (see `unit.explore`).
"""

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True)
settings.load_profile("repeatable")
