import base64

import pytest

from headgate.gateway.plugins.interface import Headers, PluginServices, Request, Response
from headgate.gateway.plugins.interface.errors import PluginRefused
from unit.gateway.plugins.running import answered, asked, chain, request
from unit.gateway.plugins.service import sending

BASIC = {"htpasswd": "jack:{PLAIN}secret", "hide_credentials": True}
HERE = {"whitelist": ["192.0.2.1"]}
ELSEWHERE = {"whitelist": ["198.51.100.0/24"]}


def asking(*headers: tuple[str, str], password: str = "") -> Request:
    token = base64.b64encode(f"jack:{password}".encode()).decode()
    return request("/", [*headers, *([("Authorization", f"Basic {token}")] if password else [])])


async def status(config: dict[str, object], given: Request, verdict: Response | None = None) -> int:
    services = PluginServices(send_to=sending(lambda upstream, question: verdict or Response(200)))
    response = await asked(chain(("satisfy-any", config), services=services), given)
    return 200 if response is None else response.status


async def test_address_or_password_is_enough() -> None:
    assert await status({"ip-restriction": HERE, "basic-auth": BASIC}, asking()) == 200
    assert await status({"ip-restriction": ELSEWHERE, "basic-auth": BASIC}, asking(password="secret")) == 200
    assert await status({"ip-restriction": ELSEWHERE, "basic-auth": BASIC}, asking(password="wrong")) == 401


async def test_address_that_is_not_denied_is_left_to_the_others() -> None:
    denied = {"blacklist": ["198.51.100.0/24"]}
    assert await status({"ip-restriction": denied, "basic-auth": BASIC}, asking()) == 401


async def test_service_is_asked_last_and_its_challenge_goes_along() -> None:
    config = {"ip-restriction": ELSEWHERE, "basic-auth": BASIC, "forward-auth": {"upstream": "auth"}}
    assert await status(config, asking()) == 200
    refusal = Response(401, Headers([("WWW-Authenticate", "Bearer")]))
    services = PluginServices(send_to=sending(lambda upstream, question: refusal))
    response = await asked(chain(("satisfy-any", config), services=services), asking())
    assert response is not None
    assert response.headers.get_all("WWW-Authenticate") == ['Basic realm="basic"', "Bearer"]


async def test_refusal_of_addresses_alone_and_of_the_service_is_a_403() -> None:
    config = {"ip-restriction": ELSEWHERE, "forward-auth": {"upstream": "auth"}}
    assert await status(config, asking(), Response(403)) == 403


async def test_failure_of_the_service_is_the_answer() -> None:
    config = {"basic-auth": BASIC, "forward-auth": {"upstream": "auth", "strict_statuses": True}}
    assert await status(config, asking(), Response(503)) == 500


@pytest.mark.parametrize("addresses", [HERE, {"blacklist": ["198.51.100.1"]}])
async def test_what_only_the_service_may_say_is_taken_from_the_client(addresses: dict[str, object]) -> None:
    config = {
        "ip-restriction": addresses,
        "basic-auth": BASIC,
        "forward-auth": {"upstream": "auth", "upstream_headers": ["X-User"]},
    }
    given = asking(("X-User", "forged"), password="secret")
    assert await status(config, given) == 200
    assert "X-User" not in given.headers
    assert "Authorization" not in given.headers


async def test_service_gives_the_client_its_cookies() -> None:
    forward = {"upstream": "auth", "response_cookies": True}
    services = PluginServices(send_to=sending(lambda _, question: Response(200, Headers([("Set-Cookie", "a=b")]))))
    plugins = chain(("satisfy-any", {"basic-auth": BASIC, "forward-auth": forward}), services=services)
    given = asking()
    assert await asked(plugins, given) is None
    assert (await answered(plugins, given, Response(200))).headers.get("Set-Cookie") == "a=b"


@pytest.mark.parametrize(
    "config",
    [{}, {"ip-restriction": HERE}, {"ip-restriction": HERE, "basic-auth": {}}, {"basic-auth": BASIC, "other": {}}],
)
def test_bad_configuration_is_refused(config: dict[str, object]) -> None:
    with pytest.raises(PluginRefused):
        chain(("satisfy-any", config))
