"""`python -m etcd_operator` is `etcd-operator`."""

import sys

from etcd_operator.cli import main

sys.exit(main())
