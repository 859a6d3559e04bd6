"""Tests of the reconcilers. Assertions outside of test modules explain themselves, too."""

import pytest

pytest.register_assert_rewrite("unit.reconcile.expected", "unit.reconcile.bench", "unit.reconcile.harness")
