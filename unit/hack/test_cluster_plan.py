import ipaddress
from itertools import combinations
from pathlib import Path

import pytest

from localcluster.instance import ensure_slot, read_slot
from localcluster.paths import State
from localcluster.plan import MAX_NODES, MAX_SLOTS, Plan

HOME = Path("/home/ann/state")


def ranges(plan: Plan) -> list[ipaddress.IPv4Network]:
    return [ipaddress.IPv4Network(each) for each in (*plan.host_routes, plan.uplink_range)]


def test_the_ranges_of_two_slots_never_overlap() -> None:
    plans = [Plan.of(HOME, slot) for slot in range(MAX_SLOTS)]
    for one, other in combinations(plans, 2):
        assert not any(mine.overlaps(theirs) for mine in ranges(one) for theirs in ranges(other))


def test_the_ranges_of_one_slot_do_not_overlap_each_other() -> None:
    for one, other in combinations(ranges(Plan.of(HOME, 3)), 2):
        assert not one.overlaps(other)


def test_every_address_lies_in_its_range() -> None:
    plan = Plan.of(HOME, MAX_SLOTS - 1)
    nodes, pods, services = (ipaddress.ip_network(each) for each in plan.host_routes)
    assert ipaddress.ip_address(plan.hub_address) in nodes
    assert {ipaddress.ip_address(plan.dns_address), ipaddress.ip_address(plan.api_service_address)} <= set(
        services
    )
    for node in plan.nodes(MAX_NODES):
        assert ipaddress.ip_address(node.address) in nodes
        assert ipaddress.IPv4Network(node.pod_range).subnet_of(ipaddress.IPv4Network(str(pods)))


def test_all_addresses_are_private() -> None:
    assert all(each.is_private for slot in range(MAX_SLOTS) for each in ranges(Plan.of(HOME, slot)))


def test_instances_of_two_users_have_different_names() -> None:
    assert Plan.of(HOME, 0).prefix != Plan.of(Path("/home/bob/state"), 0).prefix


def test_link_names_fit_into_the_kernels_fifteen_characters() -> None:
    plan = Plan.of(HOME, 0)
    links = [plan.host_link, *(node.hub_link for node in plan.nodes(MAX_NODES))]
    assert all(len(link) <= 15 for link in links)


@pytest.mark.parametrize("number", [0, MAX_NODES + 1])
def test_a_node_number_out_of_range_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match="node number"):
        Plan.of(HOME, 0).node(number)


@pytest.fixture
def routes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> set[str]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    used: set[str] = {"default"}
    monkeypatch.setattr("localcluster.network.used_routes", lambda: used)
    return used


@pytest.mark.usefixtures("routes")
def test_the_second_instance_gets_the_next_slot() -> None:
    slots = [ensure_slot(State.of_instance(name)) for name in ("dev", "e2e", "dev")]
    assert slots == [0, 1, 0]


def test_a_range_that_the_machine_routes_elsewhere_is_left_alone(routes: set[str]) -> None:
    routes.add("10.0.0.0/8")
    with pytest.raises(Exception, match="address ranges are in use"):
        ensure_slot(State.of_instance("dev"))
    routes.remove("10.0.0.0/8")
    routes.add(Plan.of(HOME, 0).service_range)
    assert ensure_slot(State.of_instance("dev")) == 1


@pytest.mark.usefixtures("routes")
def test_a_slot_file_that_was_cut_short_counts_as_none(tmp_path: Path) -> None:
    state = State(tmp_path / "x")
    state.root.mkdir()
    state.slot.write_text("")
    assert read_slot(state) is None
    assert ensure_slot(state) == 0
