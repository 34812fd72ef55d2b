from unit.gateway.plugins.people import chain_for, consumer, directory
from unit.gateway.plugins.running import asked, chain, request

USE = (
    "attach-consumer-label",
    {
        "headers": {
            "X-Consumer-Department": "$department",
            "X-Consumer-Role": "$role",
            "X-App": "$app.kubernetes.io/name",
        }
    },
)
CLAIMED = [("X-Consumer-Role", "admin"), ("apikey", "a")]


async def test_labels_of_the_consumer_are_told_and_claims_of_clients_dropped() -> None:
    labels = {"department": "devops", "app.kubernetes.io/name": "shop"}
    people = directory(consumer("jack", ("key-auth", {"key": "a"}), labels=labels))
    asking = request("/", CLAIMED)
    assert await asked(chain_for(people, ("key-auth", {}), USE), asking) is None
    assert asking.headers.get("X-Consumer-Department") == "devops"
    assert asking.headers.get("X-App") == "shop"
    assert "X-Consumer-Role" not in asking.headers


async def test_without_a_consumer_claims_are_dropped_too() -> None:
    asking = request("/", CLAIMED)
    assert await asked(chain(USE), asking) is None
    assert "X-Consumer-Role" not in asking.headers
