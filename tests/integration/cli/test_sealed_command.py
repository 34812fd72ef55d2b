"""`headgate sealed` on tables in a real store."""

from pathlib import Path

from nacl.public import PrivateKey, PublicKey

from fakes.gateway.process import commit
from fakes.gateway.served_history import empty_history
from fakes.gateway.table import ORIGIN, certificate, host, route, upstream
from fakes.translator.sealing import seal
from headgate.common.sealing import load_or_create_key_pair, recipient_id
from headgate.common.table import Consumer, Credential, PluginUse
from headgate.common.table_image import TableImage

OLD, NEW = PrivateKey.generate().public_key, PrivateKey.generate().public_key


def consumer(*recipients: PublicKey) -> Consumer:
    use = PluginUse(name="key-auth", config={}, secrets={"key": seal(b"k", recipients)})
    return Consumer(key="c1/default/ada", name="ada", credentials=(Credential(use=use),), provenance=ORIGIN)


async def test_keys_are_listed_with_what_only_they_open(tmp_path: Path) -> None:
    async with empty_history() as history:
        table = TableImage(
            [
                host("foo.com", route("/", "prefix", "up")),
                upstream("up"),
                certificate("c1/default/one", seal(b"k", [OLD]), "foo.com"),
                certificate("c1/default/two", seal(b"k", [OLD, NEW]), "bar.com"),
                consumer(NEW),
            ]
        )
        await commit(history.stores.snapshots, table, (1, 1))
        rows = [line.split() for line in (await history.ask("sealed")).out.splitlines()[1:]]
        assert rows == sorted([[recipient_id(OLD), "2", "1"], [recipient_id(NEW), "2", "1"]])
        said = await history.ask("sealed", f"--without={recipient_id(OLD)}", code=1)
        assert said.out == "opened by no other key: Certificate c1/default/one\n"
        said = await history.ask("sealed", f"--without={recipient_id(NEW)}", "--json", code=1)
        assert said.json["lost"] == ["Consumer c1/default/ada"]


async def test_a_key_that_opens_nothing_alone_may_go(tmp_path: Path) -> None:
    load_or_create_key_pair(tmp_path)
    async with empty_history() as history:
        table = TableImage([certificate("c1/default/one", seal(b"k", [NEW]), "foo.com")])
        await commit(history.stores.snapshots, table, (1, 1))
        said = await history.ask("sealed", f"--without={tmp_path / 'gateway.pub'}")
        assert said.out == "1 value: each is opened by another key\n"
        said = await history.ask("sealed", "--without=gateway", code=2)
        assert "'gateway' is neither a public key in base64 nor a file with one" in said.err


async def test_a_rollback_to_before_an_exchange_names_what_cannot_be_opened() -> None:
    async with empty_history() as history:
        for revision, key in ((1, OLD), (2, NEW)):
            table = TableImage([certificate("c1/default/one", seal(b"k", [key]), "foo.com")])
            await commit(history.stores.snapshots, table, (1, revision))
        said = await history.ask("rollback", "1", "--by=ada")
        told = "gateways may be unable to open the key of certificate c1/default/one: it was sealed to others"
        assert told in said.out
        assert (await history.ask("sealed", f"--without={recipient_id(OLD)}", code=1)).out
