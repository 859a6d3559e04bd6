"""Tests of the reconcilers. Assertions outside of test modules explain themselves, too."""

import pytest

HELPERS = ("bench", "disasters", "expected", "harness", "manual_recoveries", "quorum_losses")

pytest.register_assert_rewrite(*(f"unit.passes.{name}" for name in HELPERS))
