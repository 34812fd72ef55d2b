from dataclasses import replace
from pathlib import Path

import pytest

from headgate.gateway.plugins.interface import AnswersFolder, Headers, PluginServices, Response
from headgate.gateway.plugins.kit.kept_answers import KeptAnswer, KeptAnswers
from headgate.gateway.plugins.runtime.chain import PluginChain
from unit.gateway.plugins.people import basic
from unit.gateway.plugins.running import Clock, answered, asked, chain, exchanged, request

STATUS = "Apisix-Cache-Status"


class CacheClock(Clock):
    """A clock, and where answers are kept."""

    answers: AnswersFolder | None = None


@pytest.fixture(params=["alone", "shared"])
def clock(request: pytest.FixtureRequest, tmp_path: Path) -> CacheClock:
    """Of a worker that is alone, and of one of two."""
    clock = CacheClock()
    if request.param == "shared":
        clock.answers = AnswersFolder(tmp_path, 2, 1)
    return clock


def cache(clock: CacheClock, *more, **config) -> PluginChain:
    return chain(("proxy-cache", config), *more, services=PluginServices(clock=clock, answers=clock.answers))


async def got(plugins: PluginChain, target="/", headers=(), answer=(), body=b"fresh", status=200, **given) -> Response:
    """Ask, and let the upstream answer with these headers and this body."""
    asking = request(target, headers, **given)
    from_plugin = await asked(plugins, asking)
    if from_plugin is not None:
        return await answered(plugins, asking, from_plugin)
    return await answered(plugins, asking, Response(status, Headers(answer)), [body[:2], body[2:]])


async def seen(plugins: PluginChain, times: int = 2, **given) -> list[str | None]:
    return [(await got(plugins, **given)).headers.get(STATUS) for _ in range(times)]


async def test_second_request_gets_what_the_first_brought(clock) -> None:
    plugins = cache(clock)
    first = await got(plugins, body=b"one", answer=[("X-A", "1")])
    clock.now += 7
    second = await got(plugins, body=b"two")
    assert (first.body, first.headers.get(STATUS)) == (b"one", "MISS")
    assert (second.body, second.headers.get(STATUS)) == (b"one", "HIT")
    assert (second.headers.get("X-A"), second.headers.get("Age")) == ("1", "7")


async def test_answer_that_is_there_as_a_whole_is_kept_too(clock) -> None:
    plugins = cache(clock)
    await exchanged(plugins, request(), Response(200, Headers(), b"one", from_upstream=True))
    assert (await got(plugins)).body == b"one"


async def test_kept_answers_are_given_up_after_their_time(clock) -> None:
    plugins = cache(clock, cache_ttl=10)
    assert await seen(plugins) == ["MISS", "HIT"]
    clock.now += 10
    assert await seen(plugins) == ["EXPIRED", "HIT"]


async def test_head_is_answered_from_what_get_brought_and_brings_nothing(clock) -> None:
    plugins = cache(clock)
    assert await seen(plugins, method="HEAD") == ["MISS", "MISS"]
    await got(plugins)
    assert await seen(plugins, 1, method="HEAD") == ["HIT"]


async def test_other_methods_and_ranges_pass(clock) -> None:
    plugins = cache(clock)
    assert await seen(plugins, method="PUT") == [None, None]
    assert await seen(plugins, headers=[("Range", "bytes=0-1")]) == [None, None]


async def test_keys_tell_requests_apart(clock) -> None:
    plugins = cache(clock, cache_key=["$uri", "-$arg_a"])
    assert await seen(plugins, 1, target="/?a=1&b=1") == ["MISS"]
    assert await seen(plugins, 1, target="/?a=1&b=2") == ["HIT"]
    assert await seen(plugins, 1, target="/?a=2") == ["MISS"]


async def test_statuses_that_are_not_listed_are_not_kept(clock) -> None:
    plugins = cache(clock, cache_http_status=[200])
    assert await seen(plugins, status=404) == ["MISS", "MISS"]


@pytest.mark.parametrize("status", [502, 504])
async def test_errors_that_are_listed_are_kept(clock, status: int) -> None:
    plugins = cache(clock, cache_http_status=[502, 504])
    assert await seen(plugins, status=status) == ["MISS", "HIT"]
    assert await seen(plugins, status=200, target="/well") == ["MISS", "MISS"]


@pytest.mark.parametrize(
    ("answer", "headers", "kept"),
    [
        ([("Cache-Control", "no-store")], [], False),
        ([("Cache-Control", "max-age=60, private")], [], False),
        ([("Cache-Control", 'no-cache="Set-Cookie"')], [], False),
        ([("Set-Cookie", "a=b")], [], False),
        ([("Vary", "*")], [], False),
        ([], [("Authorization", "Basic x")], False),
        ([("Cache-Control", "public")], [("Authorization", "Basic x")], True),
        ([("Cache-Control", "max-age=0")], [], False),
    ],
)
async def test_answers_that_are_for_one_client_are_not_kept(clock, answer, headers, kept) -> None:
    assert await seen(cache(clock), answer=answer, headers=headers) == ["MISS", "HIT" if kept else "MISS"]


async def test_cookies_are_kept_if_told_so(clock) -> None:
    assert await seen(cache(clock, cache_set_cookie=True), answer=[("Set-Cookie", "a=b")]) == ["MISS", "HIT"]


async def test_answers_that_vary_are_kept_for_each_variant(clock) -> None:
    plugins = cache(clock)
    german, french = [("Accept-Language", "de")], [("Accept-Language", "fr")]
    vary = [("Vary", "Accept-Language")]
    assert (await got(plugins, headers=german, answer=vary, body=b"ja")).headers.get(STATUS) == "MISS"
    assert (await got(plugins, headers=french, answer=vary, body=b"oui")).headers.get(STATUS) == "MISS"
    assert [(await got(plugins, headers=one)).body for one in (german, french)] == [b"ja", b"oui"]


async def test_bypass_asks_the_upstream_and_keeps_nothing(clock) -> None:
    plugins = cache(clock, cache_bypass=["$arg_skip"], cache_key=["$uri"])
    assert await seen(plugins, target="/?skip=1") == ["BYPASS", "BYPASS"]
    assert await seen(plugins, target="/?skip=0") == ["MISS", "HIT"]


async def test_no_cache_looks_and_keeps_nothing(clock) -> None:
    plugins = cache(clock, no_cache=["$arg_fresh"], cache_key=["$uri"])
    assert await seen(plugins, target="/?fresh=1") == ["MISS", "MISS"]


async def test_cache_in_memory_keeps_what_it_is_not_told_to_ask_about(clock) -> None:
    plugins = cache(clock, cache_strategy="memory", cache_zone="memory_cache")
    assert await seen(plugins, answer=[("Cache-Control", "max-age=0")]) == ["MISS", "HIT"]
    clock.now += 299
    assert await seen(plugins, 1) == ["HIT"]


async def test_cache_on_disk_keeps_for_ten_seconds_what_says_nothing(clock) -> None:
    plugins = cache(clock)
    assert await seen(plugins) == ["MISS", "HIT"]
    clock.now += 10
    assert await seen(plugins, 1) == ["EXPIRED"]


async def test_upstream_says_for_how_long_if_it_is_asked(clock) -> None:
    brief = [("Cache-Control", "max-age=5")]
    plugins = cache(clock, cache_control=True, cache_ttl=100)
    assert await seen(plugins, answer=brief) == ["MISS", "HIT"]
    clock.now += 5
    assert await seen(plugins, 1) == ["EXPIRED"]
    assert await seen(cache(clock, cache_control=True), answer=[("Cache-Control", "max-age=0")]) == ["MISS", "MISS"]
    assert await seen(cache(clock, cache_control=True), answer=[("Expires", "0")]) == ["MISS", "MISS"]


@pytest.mark.parametrize("control", ["no-cache", "no-store", "max-age=5"])
async def test_client_may_want_something_newer(clock, control) -> None:
    plugins = cache(clock, cache_control=True)
    await got(plugins)
    clock.now += 6
    assert await seen(plugins, 1, headers=[("Cache-Control", control)]) == ["MISS"]


async def test_client_may_want_nothing_but_what_is_kept(clock) -> None:
    plugins = cache(clock, cache_control=True)
    wants = [("Cache-Control", "only-if-cached")]
    assert (await got(plugins, headers=wants)).status == 504
    await got(plugins)
    assert (await got(plugins, headers=wants)).status == 200


async def test_purge_forgets(clock) -> None:
    plugins = cache(clock)
    await got(plugins)
    assert [(await got(plugins, method="PURGE")).status for _ in range(2)] == [200, 404]
    assert await seen(plugins, 1) == ["MISS"]


async def test_cache_headers_are_hidden_if_told_so(clock) -> None:
    response = await got(cache(clock, hide_cache_headers=True), answer=[("Cache-Control", "max-age=9")])
    assert "Cache-Control" not in response.headers


async def test_other_plugins_change_a_kept_answer_each_time(clock) -> None:
    plugins = cache(clock, ("response-rewrite", {"headers": {"add": ["X-Seen: $arg_n"]}}), cache_key=["$uri"])
    assert (await got(plugins, "/?n=1")).headers.get_all("X-Seen") == ["1"]
    assert (await got(plugins, "/?n=2")).headers.get_all("X-Seen") == ["2"]


async def test_body_that_is_cut_off_is_not_kept(clock) -> None:
    plugins = cache(clock)
    asking, answer = request(), Response(200, Headers(), None, from_upstream=True)
    await asked(plugins, asking)
    plugins.on_response(asking, answer)
    passing = plugins.response_filter(asking, answer)
    assert passing is not None
    passing.feed(b"half")
    assert await seen(plugins, 1) == ["MISS"]


async def test_what_is_kept_outlives_a_new_table(clock) -> None:
    services = PluginServices(clock=clock, answers=clock.answers)
    before = chain(("proxy-cache", {}), services=services)
    await got(before)
    assert await seen(chain(("proxy-cache", {}), services=services), 1) == ["HIT"]


def kept(size: int) -> KeptAnswer:
    return KeptAnswer(200, Headers(), b"x" * size, 0, 1)


def test_answers_not_asked_for_longest_go_first() -> None:
    answers = KeptAnswers(3 * (1000 + 512))
    for key in "abc":
        answers.put("c/team", key, Headers(), [], kept(1000))
    answers.get("c/team", "a", Headers())
    answers.put("c/team", "d", Headers(), [], kept(1000))
    assert [answers.get("c/team", key, Headers()) is not None for key in "abcd"] == [True, False, True, True]
    assert answers.size == 3 * 1512


def test_a_flood_of_one_namespace_leaves_the_equal_share_of_another_in_place() -> None:
    answers = KeptAnswers(10 * (1000 + 512))
    for key in "abcdefgh":
        answers.put("c/quiet", key, Headers(), [], kept(1000))
    for number in range(1000):
        answers.put("c/loud", str(number), Headers(), [], kept(1000))
    remaining = [key for key in "abcdefgh" if answers.get("c/quiet", key, Headers()) is not None]
    assert remaining == list("defgh")
    assert answers.get("c/loud", "999", Headers()) is not None
    assert answers.size == 10 * 1512


def test_room_that_no_other_namespace_needs_is_for_one() -> None:
    answers = KeptAnswers(3 * (1000 + 512))
    for key in "abc":
        answers.put("c/loud", key, Headers(), [], kept(1000))
    assert answers.drop("c/loud", "a")
    answers.put("c/quiet", "a", Headers(), [], kept(1000))
    assert answers.drop("c/quiet", "a")
    assert not answers.drop("c/quiet", "a")
    answers.put("c/loud", "a", Headers(), [], kept(1000))
    assert all(answers.get("c/loud", key, Headers()) is not None for key in "abc")


def test_answers_that_vary_otherwise_take_the_place_of_those_before() -> None:
    answers = KeptAnswers()
    answers.put("c/team", "a", Headers([("X", "1")]), ["x"], kept(1))
    answers.put("c/team", "a", Headers(), [], kept(2))
    found = answers.get("c/team", "a", Headers([("X", "1")]))
    assert found is not None
    assert len(found.body) == 2
    assert answers.size == kept(2).size


async def test_users_who_are_no_consumers_get_nothing_of_each_other(clock) -> None:
    users = {"users": [{"username": name, "password": "p"} for name in ("jack", "jill")]}
    told = {**users, "hide_credentials": True, "user_header": "X-User"}
    plugins = cache(clock, ("basic-auth", told))
    for name, expected in (("jack", "MISS"), ("jill", "MISS"), ("jack", "HIT")):
        response = await got(plugins, headers=[basic(name, "p")], body=name.encode())
        assert (response.headers.get(STATUS), response.body) == (expected, name.encode())


async def test_a_namespace_neither_reads_nor_purges_what_another_has_kept(clock) -> None:
    key = {"cache_key": ["a.test", "/index.html"]}
    services = PluginServices(clock=clock, answers=clock.answers, owner="c/team-a")
    victim = chain(("proxy-cache", key), services=services)
    others = [
        chain(("proxy-cache", {**key, **more}), services=replace(services, owner=owner))
        for owner in ("c/team-b", "d/team-a", "")
        for more in ({}, {"cache_zone": "c/team-a"})
    ]
    await got(victim, body=b"secret")
    for other in others:
        assert (await got(other, body=b"evil")).body == b"evil"
        purged = [await asked(other, request(method="PURGE")) for _ in range(2)]
        assert [one.status for one in purged if one] == [200, 404], "its own"
    assert (await got(victim)).body == b"secret"


async def test_routes_of_one_namespace_share_by_their_keys(clock) -> None:
    services = PluginServices(clock=clock, answers=clock.answers, owner="c/team-a")
    first, second = (chain(("proxy-cache", {"cache_key": ["k"]}), services=services, scope=each) for each in "rs")
    await got(first, body=b"one")
    assert (await got(second)).body == b"one"


@pytest.mark.parametrize("separator", ["\n", ":", "1:"])
async def test_parts_of_a_key_cannot_pass_for_others(clock, separator: str) -> None:
    services = PluginServices(clock=clock, answers=clock.answers, owner="c/team-a")
    first = chain(("proxy-cache", {"cache_key": [f"a{separator}b", "c"]}), services=services)
    second = chain(("proxy-cache", {"cache_key": ["a", f"b{separator}c"]}), services=services)
    await got(first, body=b"one")
    assert (await got(second, body=b"two")).body == b"two"


async def test_variants_differ_in_every_line_of_a_header(clock) -> None:
    plugins = cache(clock)
    one, two = [("Accept", "a"), ("Accept", "b")], [("Accept", "a"), ("Accept", "c")]
    await got(plugins, headers=one, answer=[("Vary", "Accept")], body=b"one")
    assert (await got(plugins, headers=two, answer=[("Vary", "Accept")], body=b"two")).body == b"two"
    assert (await got(plugins, headers=one)).body == b"one"
