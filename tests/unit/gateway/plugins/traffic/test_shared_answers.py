"""Answers in files that workers share: given by all, purged for all, bounded by each, and never half or wrong."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.gateway.plugins.interface import AnswersFolder, Headers, PluginServices, Response
from headgate.gateway.plugins.kit.kept_answers import OVERHEAD, KeptAnswer, KeptAnswers
from headgate.gateway.plugins.kit.shared_answers import SharedAnswers
from headgate.gateway.plugins.runtime.chain import PluginChain
from unit.gateway.plugins.running import Clock, answered, asked, chain, request

NONE = Headers()
GERMAN, FRENCH = Headers([("Accept-Language", "de")]), Headers([("Accept-Language", "fr")])
VARY = ["accept-language"]


def workers(folder: Path, count: int = 3, limit: int = 1 << 20) -> list[SharedAnswers]:
    return [SharedAnswers(AnswersFolder(folder, count, worker), limit) for worker in range(count)]


def kept(body: bytes = b"body", status: int = 200) -> KeptAnswer:
    return KeptAnswer(status, Headers([("X-A", "\xe9"), ("X-A", "2")]), body, 10.5, 70.25)


def bodies(answers: list[SharedAnswers], key: str = "k", headers: Headers = NONE) -> list[bytes | None]:
    found = [one.get("c/team", key, headers) for one in answers]
    return [None if one is None else one.body for one in found]


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_what_one_worker_brought_all_give_as_it_was(tmp_path: Path) -> None:
    answers = workers(tmp_path)
    answers[1].put("c/team", "k", NONE, [], kept(b"\0\xff", 404))
    for one in answers:
        found = one.get("c/team", "k", NONE)
        assert found is not None
        assert (found.status, found.body, found.kept_at, found.expires) == (404, b"\0\xff", 10.5, 70.25)
        assert found.headers.to_lines() == kept().headers.to_lines()
    assert bodies(answers, "other") == [None] * 3
    assert answers[0].get("c/other", "k", NONE) is None


def test_a_newer_answer_takes_the_place_of_another_workers(tmp_path: Path) -> None:
    answers = workers(tmp_path)
    answers[0].put("c/team", "k", NONE, [], kept(b"old"))
    answers[2].put("c/team", "k", NONE, [], kept(b"new"))
    assert bodies(answers) == [b"new"] * 3
    assert len(files(tmp_path)) == 1


@pytest.mark.parametrize("purging", [0, 1, 2])
def test_whoever_purges_purges_for_all(tmp_path: Path, purging: int) -> None:
    answers = workers(tmp_path)
    answers[1].put("c/team", "k", NONE, [], kept())
    assert answers[purging].drop("c/team", "k")
    assert not answers[purging].drop("c/team", "k")
    assert bodies(answers) == [None] * 3


def test_answers_that_vary_are_given_by_all_and_purged_together(tmp_path: Path) -> None:
    answers = workers(tmp_path)
    answers[0].put("c/team", "k", GERMAN, VARY, kept(b"ja"))
    answers[1].put("c/team", "k", FRENCH, VARY, kept(b"oui"))
    assert bodies(answers, headers=GERMAN) == [b"ja"] * 3
    assert bodies(answers, headers=FRENCH) == [b"oui"] * 3
    assert bodies(answers) == [None] * 3
    assert answers[2].drop("c/team", "k")
    assert bodies(answers, headers=GERMAN) == bodies(answers, headers=FRENCH) == [None] * 3
    answers[0].put("c/team", "k", GERMAN, VARY, kept(b"doch"))
    assert bodies(answers, headers=GERMAN) == [b"doch"] * 3
    assert bodies(answers, headers=FRENCH) == [None] * 3


def test_an_answer_that_varies_otherwise_takes_the_place_of_all_before(tmp_path: Path) -> None:
    answers = workers(tmp_path)
    answers[0].put("c/team", "k", GERMAN, VARY, kept(b"ja"))
    answers[1].put("c/team", "k", GERMAN, ["x-other"], kept(b"other"))
    assert bodies(answers, headers=FRENCH) == [b"other"] * 3
    answers[1].put("c/team", "k", NONE, [], kept(b"plain"))
    assert bodies(answers, headers=GERMAN) == [b"plain"] * 3
    answers[1].put("c/team", "k", GERMAN, VARY, kept(b"ja"))
    assert bodies(answers, headers=GERMAN) == [b"ja"] * 3


def test_each_worker_parts_with_what_it_has_brought(tmp_path: Path) -> None:
    one, two = workers(tmp_path, 2, limit=5 * (1000 + OVERHEAD))
    two.put("c/team", "theirs", NONE, [], kept())
    for number in range(20):
        one.put("c/team", str(number), NONE, [], kept(b"x" * 900))
    assert one.size <= 5 * (1000 + OVERHEAD)
    assert len(files(tmp_path / "0")) == 5
    assert bodies([one, two], "0") == [None, None]
    assert bodies([one, two], "19") == [b"x" * 900] * 2
    assert bodies([one, two], "theirs") == [b"body"] * 2


def test_an_answer_that_others_have_no_room_for_leaves_nothing_behind(tmp_path: Path) -> None:
    [one] = workers(tmp_path, 1, limit=10 * (100 + OVERHEAD))
    for number in range(10):
        one.put(f"c/{number}", "k", NONE, [], kept(b"x"))
    one.put("c/big", "k", GERMAN, VARY, kept(b"x" * 5000))
    assert one.get("c/big", "k", GERMAN) is None
    assert one.size == sum(path.stat().st_size + OVERHEAD for path in files(tmp_path))


def test_nothing_is_left_of_variants_that_had_to_go(tmp_path: Path) -> None:
    [one] = workers(tmp_path, 1, limit=3 * (200 + OVERHEAD))
    for number in range(50):
        one.put("c/team", str(number), GERMAN, VARY, kept(b"x" * 100))
    assert len(files(tmp_path)) == 2 * 3


def test_the_answers_of_a_worker_that_begins_again_are_forgotten(tmp_path: Path) -> None:
    one, two = workers(tmp_path, 2)
    one.put("c/team", "k", NONE, [], kept())
    again = SharedAnswers(AnswersFolder(tmp_path, 2, 0))
    assert bodies([again, two]) == [None, None]
    two.put("c/team", "k", NONE, [], kept(b"new"))
    assert bodies([again, two]) == [b"new"] * 2


@pytest.mark.parametrize("vary", [[], VARY], ids=["plain", "varying"])
def test_a_file_that_is_cut_or_changed_anywhere_is_never_served(tmp_path: Path, vary: list[str]) -> None:
    one, two = workers(tmp_path, 2)
    one.put("c/team", "k", GERMAN, vary, kept())
    for path in files(tmp_path):
        whole = path.read_bytes()
        for size in range(len(whole)):
            path.write_bytes(whole[:size])
            assert bodies([one, two], headers=GERMAN) == [None, None]
            path.write_bytes(whole[:size] + bytes((whole[size] ^ 1,)) + whole[size + 1 :])
            assert bodies([one, two], headers=GERMAN) == [None, None]
        path.write_bytes(whole + b"x")
        assert bodies([one, two], headers=GERMAN) == [None, None]
        path.write_bytes(whole)
    assert bodies([one, two], headers=GERMAN) == [b"body"] * 2


def test_a_file_without_its_name_yet_is_not_read(tmp_path: Path) -> None:
    one, two = workers(tmp_path, 2)
    one.put("c/team", "k", NONE, [], kept())
    [path] = files(tmp_path)
    path.rename(path.with_name(f".{path.name}"))
    assert bodies([one, two]) == [None, None]


def test_a_folder_that_takes_no_files_costs_the_answer_and_nothing_else(tmp_path: Path) -> None:
    one, two = workers(tmp_path, 2)
    (tmp_path / "0").rmdir()
    one.put("c/team", "k", NONE, [], kept())
    assert bodies([one, two]) == [None, None]
    assert not one.drop("c/team", "k")


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 2),
            st.sampled_from(["put", "get", "drop"]),
            st.sampled_from(["a", "b"]),
            st.sampled_from([GERMAN, FRENCH]),
            st.sampled_from([(), ("accept-language",)]),
        ),
        max_size=40,
    )
)
def test_workers_together_are_as_one_that_is_alone(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, str, str, Headers, tuple[str, ...]]]
) -> None:
    together, alone = workers(tmp_path_factory.mktemp("answers")), KeptAnswers[KeptAnswer]()
    for number, (worker, what, key, headers, vary) in enumerate(steps):
        if what == "put":
            answer = kept(b"%d" % number)
            together[worker].put("c/team", key, headers, vary, answer)
            alone.put("c/team", key, headers, vary, answer)
        elif what == "drop":
            assert together[worker].drop("c/team", key) == alone.drop("c/team", key)
        expected = alone.get("c/team", key, headers)
        assert bodies(together, key, headers) == [None if expected is None else expected.body] * 3


async def got(plugins: PluginChain, method: str = "GET") -> Response:
    asking = request("/", method=method)
    from_plugin = await asked(plugins, asking)
    if from_plugin is not None:
        return await answered(plugins, asking, from_plugin)
    return await answered(plugins, asking, Response(200, Headers()), [b"fresh"])


async def test_routes_of_all_workers_give_what_one_has_brought_and_forget_it_together(tmp_path: Path) -> None:
    clock = Clock()
    one, two = (
        chain(("proxy-cache", {}), services=PluginServices(clock=clock, answers=AnswersFolder(tmp_path, 2, worker)))
        for worker in range(2)
    )
    told = [(await got(plugins)).headers.get("Apisix-Cache-Status") for plugins in (one, two, one)]
    assert told == ["MISS", "HIT", "HIT"]
    assert (await got(two, "PURGE")).status == 200
    assert (await got(one, "PURGE")).status == 404
    assert (await got(one)).headers.get("Apisix-Cache-Status") == "MISS"
