"""Request ids, injected faults, body limits and bandwidth."""

import asyncio
import functools
import operator
import re
import uuid

import pytest

from fakes.virtual_time import in_virtual_time
from headgate.gateway.plugins.interface import Headers, Pacing, PluginServices, Response
from headgate.gateway.plugins.interface.errors import PluginRefused
from unit.gateway.plugins.running import Clock, answered, asked, chain, exchanged, request


@pytest.mark.parametrize(
    ("algorithm", "form"),
    [
        ("uuid", r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"),
        ("uuidv7", r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"),
        ("nanoid", r"[\w-]{21}"),
        ("ksuid", r"[0-9A-Za-z]{27}"),
        ("range_id", r"[A-F]{6}"),
    ],
)
async def test_request_gets_an_id_and_the_client_learns_it(algorithm, form) -> None:
    given = request()
    config = {"algorithm": algorithm, "range_id": {"length": 6, "char_set": "ABCDEF"}}
    response = await exchanged(chain(("request-id", config)), given)
    assert re.fullmatch(form, given.id)
    assert response.headers.get("X-Request-Id") == given.id


async def test_uuids_are_random_over_batches() -> None:
    plugins, made = chain(("request-id", {})), set()
    for _ in range(600):
        given = request()
        await asked(plugins, given)
        found = uuid.UUID(given.id)
        assert (str(found), found.version, found.variant) == (given.id, 4, uuid.RFC_4122)
        made.add(found.int)
    assert len(made) == 600
    every = (1 << 128) - 1
    assert functools.reduce(operator.and_, made) == (0x4 << 76) | (0b10 << 62)  # version and variant alone are fixed
    assert functools.reduce(operator.or_, made) == every - ((0xB << 76) | (0b01 << 62))


async def test_uuid_of_version_7_sorts_by_time() -> None:
    made = []
    for _ in range(2):
        given = request()
        await asked(chain(("request-id", {"algorithm": "uuidv7"})), given)
        made.append(uuid.UUID(given.id).int >> 80)
        await asyncio.sleep(0.002)  # its clock is the real one and has milliseconds
    assert made[0] < made[1]


async def test_id_that_the_client_gave_stays() -> None:
    given = request(request_id="mine", is_id_given=True)
    await exchanged(chain(("request-id", {})), given)
    assert given.id == "mine"


@pytest.mark.parametrize("is_given", [True, False])
async def test_id_can_be_kept_from_the_client(is_given: bool) -> None:
    given = request(request_id="mine", is_id_given=is_given)
    response = await exchanged(chain(("request-id", {"include_in_response": False})), given)
    assert given.id
    assert "X-Request-Id" not in response.headers


async def test_id_may_have_a_header_of_its_own() -> None:
    given, named = request(), request("/", [("X-Trace", "t")])
    plugins = chain(("request-id", {"header_name": "X-Trace"}))
    assert (await exchanged(plugins, given)).headers.get("X-Trace") == given.headers.get("X-Trace")
    assert given.id == "id-1"
    assert (await exchanged(plugins, named)).headers.get("X-Trace") == "t"


async def test_abort_answers_with_what_it_is_told() -> None:
    abort = {"http_status": 418, "body": "tea for $remote_addr", "headers": {"X-A": "$arg_a"}}
    response = await asked(chain(("fault-injection", {"abort": abort})), request("/?a=1"))
    assert response is not None
    assert (response.status, response.body) == (418, b"tea for 192.0.2.1")
    assert response.headers.get("X-A") == "1"


async def test_faults_hit_a_share_of_the_requests_that_conditions_take(monkeypatch) -> None:
    monkeypatch.setattr("random.random", lambda: 0.3)
    abort = {"http_status": 500, "vars": [["arg_a", "==", "1"]]}
    for percentage, target, hit in ((31, "/?a=1", True), (30, "/?a=1", False), (31, "/?a=2", False)):
        plugins = chain(("fault-injection", {"abort": {**abort, "percentage": percentage}}))
        assert (await asked(plugins, request(target)) is not None) is hit


@in_virtual_time
async def test_delay_comes_before_the_abort() -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    config = {"delay": {"duration": 30}, "abort": {"http_status": 503}}
    response = await asked(chain(("fault-injection", config)), request())
    assert response is not None
    assert loop.time() - began == pytest.approx(30, abs=0.05)


def test_fault_injection_without_a_fault_is_refused() -> None:
    with pytest.raises(PluginRefused, match="needs abort or delay"):
        chain(("fault-injection", {}))


async def test_body_that_is_announced_too_long_is_refused() -> None:
    plugins = chain(("client-control", {"max_body_size": 10}))
    refused = await asked(plugins, request(content_length=11))
    assert refused is not None
    assert refused.status == 413


@pytest.mark.parametrize("length", [10, None])
async def test_body_is_bounded_while_it_comes(length) -> None:
    given = request(content_length=length)
    assert await asked(chain(("client-control", {"max_body_size": 10})), given) is None
    assert given.max_body == 10


async def test_no_limit_is_none() -> None:
    given = request(content_length=1 << 40)
    assert await asked(chain(("client-control", {})), given) is None
    assert given.max_body is None


async def test_bandwidth_sets_a_pace() -> None:
    clock = Clock()
    plugins = chain(("bandwidth", {"rate": 1000, "after": 500}), services=PluginServices(clock=clock))
    response = await answered(plugins, request(), Response(200, Headers()), b"x")
    pace = response.pacing
    assert pace is not None
    assert pace.wait_s(1500, clock.now) == 0
    assert pace.wait_s(2500, clock.now) == pytest.approx(1.0)
    assert pace.wait_s(2500, clock.now + 1) == 0


def test_pace_over_time_is_the_rate() -> None:
    pace, now, sent = Pacing(100, 0, 0.0), 0.0, 0
    while sent < 10_000:
        now += pace.wait_s(sent, now)
        sent += 64
    assert now == pytest.approx(99, abs=1)
