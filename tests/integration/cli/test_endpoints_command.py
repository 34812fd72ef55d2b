"""`headgate endpoints` on a published table, beside gateways that keep endpoints from requests."""

import time

from fakes.gateway.process import commit
from fakes.gateway.served_history import History, told
from fakes.gateway.table import endpoint, host, route, upstream
from fakes.traffic import summary
from headgate.common.table_image import TableImage
from headgate.common.traffic import UnfitEndpoint

NOW = time.time()
EJECTED = UnfitEndpoint("up", "10.0.0.2:80", "ejected", NOW - 40, NOW + 600, "503")


async def publish(history: History) -> None:
    endpoints = [endpoint(1), endpoint(2), endpoint(3, ready=False, serving=False)]
    table = TableImage([host("foo.com", route("/", "prefix", "up")), upstream("up", *endpoints)])
    await commit(history.stores.snapshots, table, (1, 1))


async def test_endpoints_without_requests_are_listed_with_what_gateways_say() -> None:
    async with told(summary(unfit=(EJECTED,)), summary(unfit=(EJECTED,), worker=1)) as history:
        await publish(history)
        said = await history.ask("endpoints", code=1)
        rows = [line.split() for line in said.out.splitlines()]
        assert rows[1][:3] == ["up", "10.0.0.2:80", "ejected"]
        assert rows[1][-2:] == ["2", "503"]
        assert rows[2][:4] == ["up", "10.0.0.3:80", "not", "ready"]
        assert said.out.splitlines()[-1] == "1 of 3 endpoints get requests"


async def test_all_endpoints_of_one_upstream_are_listed_for_programs() -> None:
    async with told(summary(unfit=(EJECTED,))) as history:
        await publish(history)
        said = (await history.ask("endpoints", "up", "--json", code=1)).json
        assert [line["state"] for line in said["endpoints"]] == ["ready", "ejected", "not ready"]
        assert said["endpoints"][1]["until"].startswith("20")
        said = await history.ask("endpoints", "down", code=2)
        assert "the table 'default' has no endpoints of 'down'" in said.err


async def test_all_is_well() -> None:
    async with told() as history:
        await commit(history.stores.snapshots, TableImage([upstream("up", endpoint(1))]), (1, 1))
        assert (await history.ask("endpoints")).out == "1 of 1 endpoints get requests\n"
        assert "ready" in (await history.ask("endpoints", "--all")).out
