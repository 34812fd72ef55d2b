"""The console's pages beside a real NATS server, and who may see and change what."""

import re
from pathlib import Path

import pytest

from fakes.console import OPERATOR, VIEWER, Console, console, people_file
from fakes.traffic import counts, of_route, summary
from fakes.translator.deltas import endpoint_slice, ingress, service
from headgate.common.traffic import Attempt, TappedRequest

OBJECTS = (
    ingress("web", host="a.example"),
    ingress("lost", host="b.example", service="gone"),
    service(),
    endpoint_slice("web", "10.0.0.1"),
)
NAME = "a.example|a/default/web prefix /"
PAGES = {
    "/": "Last change",
    "/routes": "a.example",
    "/routes/rows?after=1": "a.example",
    f"/route?name={NAME}": "10.0.0.1:8080",
    "/why": "curl",
    "/why?request=http://a.example/&revision=HEAD": "no gateway answers",
    "/changes": "Compare",
    "/changes/diff?from=HEAD&to=HEAD": "They serve the same",
    "/fleet": "No gateway announces itself",
    "/clusters": "<td>a</td>",
    "/endpoints": "All endpoints get requests",
    "/endpoints?all=true": "10.0.0.1:8080",
    "/objects": "ServiceNotFound",
    "/object?object=ingress/default/lost": "Service default/gone not found",
    "/certificates": "The table has none",
    "/live": "Listening",
    "/plan": "What would these manifests change?",
    "/audit": "manifests of another controller",
}


async def test_every_page_shows_what_it_is_about_and_the_command_for_it() -> None:
    async with console(*OBJECTS) as made:
        await made.until("/objects", lambda said: said["total"])
        for path, said in PAGES.items():
            found = await made.get(path)
            assert (found.status, found.headers["Content-Type"]) == (200, "text/html; charset=utf-8"), path
            assert said in found.text, path
            if not path.startswith("/routes/rows"):
                assert '<code class="command" title="The same question on the command line">headgate ' in found.text, (
                    path
                )


async def test_pages_allow_browsers_nothing_that_is_not_theirs() -> None:
    async with console(*OBJECTS) as made:
        for path in (*PAGES, "/api/v1/now", "/nothing"):
            found = await made.get(path)
            assert "default-src 'none'; script-src 'self'" in found.headers["Content-Security-Policy"], path
            assert found.headers["X-Content-Type-Options"] == "nosniff"
            assert not re.search(r"<script[^>]*>[^<]|\son[a-z]+=|\sstyle=", found.text), path


async def test_what_objects_say_is_text_on_pages() -> None:
    evil = ingress("web", host="a.example", path="/<script>alert(1)</script>")
    async with console(evil, service()) as made:
        page = (await made.get("/routes")).text
        assert "&lt;script&gt;alert(1)" in page
        assert "<script>alert(1)" not in page


async def test_static_files_are_kept_by_browsers_and_small() -> None:
    async with console(*OBJECTS) as made:
        total = 0
        for name in ("app.css", "app.js"):
            found = await made.get(f"/static/{name}")
            assert "immutable" in found.headers["Cache-Control"]
            total += len(found.body)
        assert total < 250_000
        assert (await made.get("/static/..%2f__init__.py")).status == 404


async def test_traffic_is_on_the_page_of_its_route() -> None:
    busy = summary(of_route(NAME, "a/default/web:80", counts(50, failed=5)))
    async with console(*OBJECTS, summaries=[busy]) as made:
        await made.until("/routes", lambda said: said["items"][0]["traffic"]["requests"])
        page = (await made.get(f"/route?name={NAME}")).text
        assert "10.0%" in page
        assert '<svg class="spark"' in page


async def test_what_is_wrong_with_a_routes_object_is_on_its_page() -> None:
    async with console(*OBJECTS) as made:
        await made.until("/objects", lambda said: said["total"])
        name = (await made.api("/routes?q=b.example"))["items"][0]["name"]
        assert "Service default/gone not found" in (await made.get(f"/route?name={name}")).text
        assert (await made.api(f"/route?name={name}"))["problems"][0]["reason"] == "ServiceNotFound"
        assert (await made.api(f"/route?name={NAME}"))["problems"] == []


async def test_a_request_of_the_past_is_on_the_pages_by_its_id() -> None:
    failed = TappedRequest(
        *((), 1.0, "GET", "a.example", "/cart", 502, 0.3, 12, "192.0.2.1", "id-1", NAME, "up", "10.0.0.1:80"),
        "nobody took it",
        (Attempt("10.0.0.2:80", "connect", 0.1),),
    )
    async with console(*OBJECTS, summaries=[summary(failed=(failed,))]) as made:
        await made.until("/failed", lambda said: said["total"])
        assert "10.0.0.2:80 connect" in (await made.get("/live?request_id=id-1")).text
        assert "nobody took it" not in (await made.get("/live?request_id=id-2")).text
        page = (await made.get("/why?request=id-1")).text
        assert "because nobody took it" in page
        assert "headgate explain --request-id id-1" in page
        assert "is none of the last" in (await made.get(f"/why?request={'4bf92f35' * 4}")).text


# Rights


async def test_on_loopback_everybody_may_look_and_nobody_may_change() -> None:
    async with console(*OBJECTS) as made:
        assert (await made.get("/")).status == 200
        assert (await made.ask("POST", "/api/v1/actions", json={"action": "unpin", "reason": "x"})).status == 403
        assert (await made.ask("POST", "/actions", data={"action": "unpin"})).status == 403


async def test_on_loopback_it_answers_to_no_other_name() -> None:
    async with console(*OBJECTS) as made:
        assert (await made.get("/api/v1/now", Host="evil.example")).status == 421
        assert (await made.get("/api/v1/now", Host="localhost:9090")).status == 200


async def test_strangers_are_asked_to_log_in(tmp_path: Path) -> None:
    async with console(*OBJECTS, flags=[f"--console-people-file={people_file(tmp_path)}"]) as made:
        page, answer = await made.get("/routes"), await made.get("/api/v1/routes")
        assert (page.status, page.headers["Location"]) == (303, "/login")
        assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert (await made.get("/api/v1/now", VIEWER)).status == 200
        assert (await made.get("/api/v1/now", "guessed")).status == 401


async def test_a_session_is_begun_by_a_token_and_ended_by_its_person(tmp_path: Path) -> None:
    async with console(*OBJECTS, flags=[f"--console-people-file={people_file(tmp_path)}"]) as made:
        assert (await made.ask("POST", "/login", data={"token": "wrong"})).status == 401
        found = await made.ask("POST", "/login", data={"token": VIEWER})
        assert found.status == 303
        assert {"HttpOnly", "SameSite=Strict"} <= set(found.headers["Set-Cookie"].split("; "))
        assert "bob · log out" in (await made.get("/")).text
        assert (await made.ask("POST", "/logout", data={"token": await form_token(made)})).status == 303
        assert (await made.get("/")).status == 303


async def test_who_guesses_has_to_wait(tmp_path: Path) -> None:
    async with console(*OBJECTS, flags=[f"--console-people-file={people_file(tmp_path)}"]) as made:
        guesses = [(await made.ask("POST", "/login", data={"token": str(number)})).status for number in range(12)]
        assert guesses[:10] == [401] * 10
        assert 429 in guesses[10:]
        assert (await made.ask("POST", "/login", data={"token": OPERATOR})).status == 303


async def form_token(made: Console) -> str:
    found = re.search(r'name="token" value="([^"]+)"', (await made.get("/")).text)
    assert found is not None
    return found[1]


# Changes


@pytest.mark.parametrize("token", [VIEWER])
async def test_a_viewer_changes_nothing(tmp_path: Path, token: str) -> None:
    async with console(*OBJECTS, flags=[f"--console-people-file={people_file(tmp_path)}"]) as made:
        asked = {"action": "drain", "cluster": "a", "reason": "x"}
        assert (await made.ask("POST", "/api/v1/actions", token, json=asked)).status == 403
        assert "Drain a" not in (await made.get("/clusters", token)).text


async def test_an_operator_goes_back_with_a_reason_that_stands_in_the_history(tmp_path: Path) -> None:
    async with console(*OBJECTS, flags=[f"--console-people-file={people_file(tmp_path)}"]) as made:
        await made.history.say(ingress("new", host="c.example"))
        asked = {"action": "rollback", "revision": "HEAD~1"}
        dry = await made.ask("POST", "/api/v1/actions", OPERATOR, json={**asked, "dry_run": True})
        assert (dry.status, b"c.example" in dry.body, b'"revision": null' in dry.body) == (200, True, True)
        assert (await made.ask("POST", "/api/v1/actions", OPERATOR, json=asked)).status == 400
        done = await made.ask("POST", "/api/v1/actions", OPERATOR, json={**asked, "reason": "it broke the shop"})
        assert done.status == 200
        said = (await made.history.ask("history", "--limit=1")).out
        assert "ada" in said
        assert "it broke the shop" in said


async def test_a_form_of_another_session_or_site_changes_nothing(tmp_path: Path) -> None:
    async with console(*OBJECTS, flags=[f"--console-people-file={people_file(tmp_path)}"]) as made:
        await made.ask("POST", "/login", data={"token": OPERATOR})
        asked = {"action": "drain", "cluster": "a", "reason": "x"}
        token = await form_token(made)
        assert (await made.ask("POST", "/actions", data={**asked, "token": "other"})).status == 403
        foreign = await made.ask("POST", "/actions", data={**asked, "token": token}, Sec_Fetch_Site="cross-site")
        assert foreign.status == 403
        assert (await made.ask("POST", "/api/v1/actions", json=asked)).status == 400
        done = await made.ask("POST", "/actions", data={**asked, "token": token})
        assert done.status == 200
        found = await made.get("/clusters")
        assert "drained by ada" in found.text
        assert "Give a requests again" in found.text


async def test_credentials_for_a_proxy_in_between_are_no_token(tmp_path: Path) -> None:
    async with console(*OBJECTS, flags=[f"--console-people-file={people_file(tmp_path)}"]) as made:
        await made.ask("POST", "/login", data={"token": OPERATOR})
        asked = {"action": "drain", "cluster": "a", "reason": "x"}
        for site, status in (("same-site", 403), ("same-origin", 400)):
            sent = {"Authorization": "Basic YTpi", "Sec-Fetch-Site": site}
            assert (await made.ask("POST", "/api/v1/actions", json=asked, **sent)).status == status


async def test_a_viewer_may_ask_for_heads_of_answers(tmp_path: Path) -> None:
    async with console(*OBJECTS, flags=[f"--console-people-file={people_file(tmp_path)}"]) as made:
        assert (await made.ask("HEAD", "/", VIEWER)).status == 200
        assert (await made.ask("HEAD", "/")).status == 303


@pytest.mark.parametrize(
    "kind", ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "a/b; charset=c"]
)
async def test_a_form_that_cannot_be_read_is_refused(tmp_path: Path, kind: str) -> None:
    async with console(*OBJECTS, flags=[f"--console-people-file={people_file(tmp_path)}"]) as made:
        found = await made.ask("POST", "/login", data=b"token=\xff", Content_Type=kind)
        assert found.status == (401 if kind.startswith("a/b") else 400)


async def test_a_token_that_is_no_text_is_nobodys(tmp_path: Path) -> None:
    async with console(*OBJECTS, flags=[f"--console-people-file={people_file(tmp_path)}"]) as made:
        assert (await made.get("/api/v1/now", "\udcff")).status == 401
        await made.ask("POST", "/login", data={"token": OPERATOR})
        assert (await made.ask("POST", "/actions", data={"token": "é"})).status == 403


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"action": "explode", "reason": "x"}, "none of rollback, unpin"),
        ({"action": "rollback", "reason": "x"}, "revision: say which"),
        ({"action": "drain", "reason": "x"}, "cluster: say which"),
        ({"action": "drain", "cluster": "nowhere", "reason": "x"}, "no cluster 'nowhere'"),
        ({"action": "unpin", "reason": "x"}, "is not pinned"),
        ({"action": "unpin", "reason": "x" * 501}, "at most 500 characters"),
        ({"action": "promote", "reason": "x", "dry_run": True}, "dry_run is for rollback and unpin"),
        ([], "must be a JSON object"),
    ],
)
async def test_a_change_that_cannot_be_says_why(tmp_path: Path, asked: object, said: str) -> None:
    async with console(*OBJECTS, flags=[f"--console-people-file={people_file(tmp_path)}"]) as made:
        found = await made.ask("POST", "/api/v1/actions", OPERATOR, json=asked)
        assert found.status in (400, 404)
        assert said in found.text
