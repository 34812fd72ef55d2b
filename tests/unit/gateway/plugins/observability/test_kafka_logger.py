"""What `kafka-logger` sends to a broker, and what becomes of it when there is none."""

import json
from contextlib import nullcontext
from typing import Any

import pytest
from aiokafka.errors import KafkaError

from fakes.gateway.ports import free_port
from fakes.gateway.tls import SelfSigned
from fakes.peers.kafka_broker import KafkaBroker, kafka_broker
from fakes.waiting import until
from headgate.common.plugins.checking import check_use
from headgate.common.plugins.errors import PluginFault
from headgate.common.plugins.observability.loggers import KafkaLoggerConfig
from headgate.common.table import PluginUse
from headgate.gateway.net.dialling import Dialler
from headgate.gateway.plugins.built_in.observability import batches
from headgate.gateway.plugins.built_in.observability.kafka.cluster import KafkaCluster
from headgate.gateway.plugins.built_in.observability.kafka.connections import MAX_ITERATIONS, ClientName, Connection
from headgate.gateway.plugins.interface import Headers, Response
from unit.gateway.plugins.observability.test_loggers import Closed
from unit.gateway.plugins.running import answered, asked, chain, request

FORMAT = {"log_format": {"uri": "$uri", "route_id": "r"}}


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let entries have the time that they need at the end."""
    monkeypatch.setattr(batches, "CLOSE_S", 60.0)


def told(broker: KafkaBroker, **more: Any) -> dict[str, Any]:
    return {"brokers": [{"host": "127.0.0.1", "port": broker.port}], "kafka_topic": "logs", **FORMAT, **more}


async def log(closed: Closed, config: dict[str, Any], *targets: str, **given: Any) -> None:
    """Send requests through a route with the logger."""
    plugins = chain(("kafka-logger", config), services=closed.services)
    for target in targets:
        asking = request(target, [("X-A", "1")], **given)
        await asked(plugins, asking)
        await answered(plugins, asking, Response(200, Headers()), b"fine")
        plugins.on_finish(asking, 200, 0.01)


async def sent(config: dict[str, Any], *targets: str, **given: Any) -> None:
    """The same, until all is sent."""
    closed = Closed()
    await log(closed, config, *targets, **given)
    await closed.close()


async def test_a_batch_is_a_message_with_an_array() -> None:
    async with kafka_broker() as broker:
        await sent(told(broker, key="k"), "/one", "/two")
    (message,) = broker.messages
    assert [entry["uri"] for entry in json.loads(message.value)] == ["/one", "/two"]
    assert (message.key, message.acks) == (b"k", 1)


async def test_batches_of_one_are_messages_of_one_entry_that_go_out_at_once() -> None:
    async with kafka_broker() as broker:
        closed = Closed()
        await log(closed, told(broker, batch_max_size=1), "/one", "/two")
        await until(lambda: len(broker.messages) == 2)
        await closed.close()
    assert {message.value for message in broker.messages} == {
        b'{"uri":"/one","route_id":"r"}',
        b'{"uri":"/two","route_id":"r"}',
    }
    assert {message.key for message in broker.messages} == {None}


async def test_messages_with_one_key_go_to_one_partition_and_others_are_spread() -> None:
    async with kafka_broker() as broker:
        await sent(told(broker, batch_max_size=1, key="k"), *["/k"] * 8)
        assert len({message.partition for message in broker.messages}) == 1
        await sent(told(broker, batch_max_size=1), *["/n"] * 40)
        assert len({message.partition for message in broker.messages}) == 2


@pytest.mark.parametrize("acks", [0, 1, -1])
async def test_who_has_to_have_a_message_is_asked_for(acks: int) -> None:
    async with kafka_broker() as broker:
        await sent(told(broker, required_acks=acks), "/one")
        await until(lambda: bool(broker.messages))
    assert broker.messages[0].acks == acks


async def test_an_entry_may_be_the_request_as_it_came() -> None:
    config = {"meta_format": "origin", "include_req_body": True, "batch_max_size": 1}
    posted = {"method": "POST", "body": b"body", "content_length": 4}
    async with kafka_broker() as broker:
        await sent(told(broker, **config), "/a?b=1", **posted)
        await sent(told(broker, **config | {"batch_max_size": 5}), "/a", "/b")
    text = b"POST /a?b=1 HTTP/1.1\r\nhost: a.example\r\ncontent-length: 4\r\nx-a: 1\r\n\r\nbody"
    assert broker.messages[0].value == text
    assert json.loads(broker.messages[1].value)[1].startswith("GET /b HTTP/1.1\r\nhost: a.example\r\n")


async def test_a_batch_that_brokers_would_not_take_goes_in_several_messages() -> None:
    body = b"x" * 500_000
    config = {"include_req_body": True}
    posted = {"method": "POST", "body": body, "content_length": len(body)}
    async with kafka_broker() as broker:
        await sent(told(broker, **config), "/1", "/2", "/3", **posted)
    parts = [[entry["uri"] for entry in json.loads(message.value)] for message in broker.messages]
    assert sorted(parts) == [["/1"], ["/2"], ["/3"]]


async def test_an_entry_that_is_too_long_is_dropped_and_costs_no_other(caplog: pytest.LogCaptureFixture) -> None:
    large = {"method": "POST", "body": b"\x01" * 400_000, "content_length": 400_000}
    async with kafka_broker() as broker:
        closed = Closed()
        config = told(broker, include_req_body=True, log_format=None)
        await log(closed, config, "/large", **large)
        await log(closed, config, "/small")
        await closed.close()
    assert [[entry["request"]["uri"] for entry in json.loads(each.value)] for each in broker.messages] == [["/small"]]
    assert "an entry has more than 1000000 bytes" in caplog.text


async def test_loggers_of_one_cluster_share_a_connection_and_the_topic_may_differ() -> None:
    async with kafka_broker() as broker:
        closed = Closed()
        for route in ("/one", "/two", "/three"):
            await log(closed, told(broker, batch_max_size=1), route)
            await until(lambda route=route: any(route.encode() in each.value for each in broker.messages))
        # One to ask for the cluster, which ends, and one that stays.
        assert broker.accepted == 2
        await closed.close()
        await until(lambda: not broker.connections)


async def test_a_message_that_is_refused_for_a_moment_is_sent_again() -> None:
    async with kafka_broker(refused=1) as broker:
        await sent(told(broker), "/one")
    assert len(broker.messages) == 1


async def test_a_topic_that_is_not_there_costs_the_entries(caplog) -> None:
    async with kafka_broker(topic="other") as broker:
        await sent(told(broker, timeout=1), "/one")
    assert "1 log entries to logs at 127.0.0.1" in caplog.text
    assert broker.messages == []


async def test_brokers_that_are_down_cost_the_entries_and_are_told_with_the_reason(caplog) -> None:
    closed = Closed()
    nobody = free_port()
    config = {"broker_list": {"127.0.0.1": nobody}, "kafka_topic": "logs", "batch_max_size": 1}
    plugins = chain(("kafka-logger", config), services=closed.services)
    for _ in range(3):
        plugins.on_finish(request(), 200, 0.01)
    await closed.close()
    assert f'Unable connect to "127.0.0.1:{nobody}"' in caplog.text
    assert "Connect call failed" in caplog.text or "Connection refused" in caplog.text
    assert sum(record.name.startswith("aiokafka") for record in caplog.records) == 1
    assert "log entries to logs at 127.0.0.1" in caplog.text


async def test_a_password_is_given() -> None:
    async with kafka_broker(password=b"secret") as broker:
        config = told(broker)
        config["brokers"][0]["sasl_config"] = {"user": "logger", "password": "secret"}
        await sent(config, "/one")
    assert len(broker.messages) == 1


async def test_a_wrong_password_is_told_without_it(caplog) -> None:
    async with kafka_broker(password=b"secret") as broker:
        config = told(broker)
        config["brokers"][0]["sasl_config"] = {"user": "logger", "password": "hunter2"}
        await sent(config, "/one")
    assert broker.messages == []
    assert "SaslAuthenticationFailed" in caplog.text
    assert "hunter2" not in caplog.text


@pytest.mark.parametrize(("tls", "count"), [({}, 1), ({"verify": True}, 0)])
async def test_brokers_are_spoken_to_over_tls_and_verified_if_that_is_asked(tls: Any, count: int, caplog) -> None:
    async with kafka_broker(tls=SelfSigned("127.0.0.1").server_context()) as broker:
        await sent(told(broker, tls=tls), "/one")
    assert len(broker.messages) == count
    assert ("CERTIFICATE_VERIFY_FAILED" in caplog.text) is not bool(count)


async def test_a_producer_ends_when_nothing_is_sent_and_begins_anew() -> None:
    async with kafka_broker() as broker:
        config = KafkaLoggerConfig.model_validate(told(broker))
        cluster = KafkaCluster(config, idle_s=0.01)
        for number in range(2):
            await cluster.send("logs", b"%d" % number, None)
            await until(lambda: not broker.connections)
        assert [message.value for message in broker.messages] == [b"0", b"1"]
        await cluster.close()


def refusal(**config: Any) -> str:
    with pytest.raises(PluginFault) as fault:
        check_use(PluginUse(name="kafka-logger", config={"kafka_topic": "logs", **config}))
    return str(fault.value)


def test_wrong_configurations_are_named() -> None:
    brokers = [{"host": "a", "port": 1}]
    logins = [{**brokers[0], "sasl_config": {"user": user, "password": "p"}} for user in ("a", "b")]
    assert "either brokers or broker_list" in refusal()
    assert "either brokers or broker_list" in refusal(brokers=brokers, broker_list={"a": 1})
    assert "from 1 to 65535" in refusal(broker_list={"a": 0})
    assert "the same for all brokers" in refusal(brokers=logins)
    assert "config.required_acks" in refusal(brokers=brokers, required_acks=2)
    assert "config.kafka_topic" in refusal(brokers=brokers, kafka_topic="a b")


async def test_no_broker_decides_how_long_its_password_is_hashed() -> None:
    client = ClientName("test", Dialler())
    login = {"sasl_mechanism": "SCRAM-SHA-256", "sasl_plain_username": "u", "sasl_plain_password": "p"}
    connection = Connection("127.0.0.1", 9, client_id=client, **login)
    for iterations, refused in ((MAX_ITERATIONS, False), (MAX_ITERATIONS + 1, True), (2**31 - 1, True), (0, True)):
        scram = connection.authenticator_scram()
        nonce = scram.first_message().rpartition("r=")[2]
        with pytest.raises(KafkaError) if refused else nullcontext():
            scram.process_server_first_message(f"r={nonce}more,s=c2FsdA==,i={iterations}")


@pytest.mark.parametrize(
    "brokers",
    [
        {"brokers": [{"host": f"b{number}", "port": 1} for number in range(65)]},
        {"broker_list": {f"b{number}": 1 for number in range(65)}},
    ],
)
def test_one_use_names_few_brokers(brokers: dict[str, Any]) -> None:
    with pytest.raises(PluginFault, match="at most 64"):
        check_use(PluginUse(name="kafka-logger", config={"kafka_topic": "t", **brokers}))
