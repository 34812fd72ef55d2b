import pytest

from headgate.gateway.plugins.interface import Headers, Response
from headgate.gateway.plugins.interface.errors import PluginRefused
from unit.gateway.plugins.running import answered, chain, request

RULE = {"pattern": "http://in/", "replacement": "/"}


async def test_answers_of_the_gateway_itself_are_left_alone() -> None:
    plugins = chain(("proxy-redirect", {"location": [RULE]}))
    own = await answered(plugins, request(), Response(302, Headers([("Location", "http://in/x")])))
    assert own.headers.get("Location") == "http://in/x"
    upstream = Response(302, Headers([("Location", "http://in/x")]), from_upstream=True)
    assert (await answered(plugins, request(), upstream)).headers.get("Location") == "/x"


@pytest.mark.parametrize("config", [{}, {"location": []}, {"cookie_path": [{"pattern": "(", "is_regex": True}]}])
def test_bad_configuration_is_refused(config: dict[str, object]) -> None:
    with pytest.raises(PluginRefused):
        chain(("proxy-redirect", config))
