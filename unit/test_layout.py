"""A file of the package has one idea, and a length at which it is read as a whole."""

from pathlib import Path

import etcd_operator

ROOT = Path(etcd_operator.__file__).parent
FILES = sorted(path for path in ROOT.rglob("*.py") if "_pb2" not in path.name)

LONGEST = 300


def test_no_file_is_long() -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in FILES}
    assert len(lengths) > 100
    assert {path: length for path, length in lengths.items() if length > LONGEST} == {}
