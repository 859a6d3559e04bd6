"""What the image installs is what is tested; pip itself refuses what has no hash."""

import re

import pytest

from generators.requirements import wanted
from generators.tree import ROOT


def pins(name: str) -> dict[str, str]:
    """The version of each package in a file of pip; names as the index compares them."""
    found = re.findall(r"^([\w.-]+)==([^\s;]+)", (ROOT / name).read_text(), re.MULTILINE)
    return {re.sub(r"[-_.]+", "-", package).lower(): version for package, version in found}


@pytest.mark.parametrize("name", wanted())
def test_the_image_gets_the_versions_that_are_tested(name: str) -> None:
    """After a change of setup.cfg or constraints.txt: hack/generate-requirements."""
    made, tested = pins(name), pins("constraints.txt")
    assert {package: tested.get(package) for package in made} == made
    asked = {re.split(r"[ <>=]", line)[0].replace("_", "-") for line in wanted()[name].split("\n") if line}
    assert asked <= made.keys()
