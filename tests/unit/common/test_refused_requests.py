"""Requests that the server does not permit fail at once, under whatever name it refuses them."""

import asyncio

import pytest

from headgate.common.bus.client import PatientClient
from headgate.common.bus.requests import Requests
from headgate.common.errors import NotPermitted


class Unanswering(PatientClient):
    """A client whose requests get no answer."""

    async def subscribe(self, *_arguments: object, **_options: object) -> object:  # type: ignore[override]
        return None

    async def publish(self, *_arguments: object, **_options: object) -> None:
        return


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ("$JS.API.DIRECT.GET.KV_X", "$js.api.direct.get.kv_x"),
        ("$JS.API.DIRECT.GET.KV_X", "$js.hub.api.direct.get.kv_x"),
        ("$KV.X.a.b", "$js.hub-1.api.$kv.x.a.b"),
        ("headgate.plan.default", "headgate.plan.default"),
    ],
)
async def test_what_is_asked_here_is_refused_as_an_edges_server_sends_it_on(asked: str, named: str) -> None:
    requests = Requests(Unanswering())
    asking = asyncio.create_task(requests.send(asked, b"", None))
    other = asyncio.create_task(requests.send(f"{asked}.other", b"", None))
    await asyncio.sleep(0.01)
    assert requests.refuse(named) == asked
    with pytest.raises(NotPermitted, match="publish to"):
        await asking
    assert not other.done()
    requests.end()
    with pytest.raises(TimeoutError):
        await other
