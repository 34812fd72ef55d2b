"""What recognising one of many consumers costs a gateway, without sockets.

    python -m bench.consumers [--consumers 10000] [--requests 50000]

A table of so many consumers, each with a sealed key, is compiled as a gateway compiles it; then requests with keys of
all of them go through a chain with `key-auth` alone, headers for the upstream included. Prints processor time, of the
best round, as the others met something else on the machine.
"""

import argparse
import gc
import random
import time
from collections.abc import Callable, Iterator

from nacl.public import PrivateKey

from headgate.common.sealing import Purpose, Sealer, Unsealer
from headgate.common.snapshot import ChunkName, Version
from headgate.common.table import Consumer, Credential, PluginUse, Provenance
from headgate.common.table_image import TableImage
from headgate.gateway.balancing.endpoints import EndpointDirectory
from headgate.gateway.plugins.interface import Headers, PluginServices, Request
from headgate.gateway.plugins.interface.consumers import ConsumerDirectory
from headgate.gateway.plugins.runtime.chain import PluginChain
from headgate.gateway.plugins.runtime.registry import PluginRegistry
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.pools import PoolRegistry
from headgate.gateway.table.compiler import TableCompiler, TableUpdate

ROUNDS = 9
HEAD = tuple((f"X-Browser-{number}", "some value of the usual length, or so") for number in range(12))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--consumers", type=int, default=10_000)
    parser.add_argument("--requests", type=int, default=50_000)
    options = parser.parse_args()
    key = PrivateKey.generate()
    image = TableImage(consumer(number, key) for number in range(options.consumers))
    # A gateway does not have these objects, nor looks through them for garbage.
    gc.collect()
    gc.freeze()
    directory = ConsumerDirectory()
    unsealer = Unsealer([key])
    compiler = TableCompiler(EndpointDirectory(PoolRegistry(ProxyConfig())), unsealer.open, consumers=directory)
    update, contents = staged(compiler, image)
    began = time.process_time()
    steps = [took for name in update.needed for took in durations(update.add(name, contents[name.digest]))]
    compiled_s = time.process_time() - began
    began = time.process_time()
    update.commit()
    swap_s = time.process_time() - began
    settling = list(durations(update.settling))
    print(f"{options.consumers} consumers: compiled in {compiled_s:.2f} s, longest step {max(steps) * 1000:.1f} ms")
    print(f"swapped in {swap_s * 1000:.2f} ms, settled in {sum(settling) * 1000:.1f} ms, ", end="")
    print(f"longest step {max(settling) * 1000:.2f} ms")
    use = [PluginUse(name="key-auth")]
    chain = PluginRegistry(found=()).chain(use, PluginServices(consumers=directory), unsealer.open, scope="host|route")
    assert chain is not None
    keys = [f"key-{number}" for number in range(options.consumers)]
    known = per_request(chain, options.requests, lambda: random.choice(keys))
    unknown = per_request(chain, options.requests, lambda: "nobody's key")
    find = directory.find
    raw = [each.encode() for each in keys]
    alone = per_part(lambda: sum(find("key-auth", each) is not None for each in raw), len(raw))
    print(f"look-up alone: {alone:.2f} microseconds")
    print(f"key-auth, recognised: {known:.2f} microseconds; refused: {unknown:.2f} microseconds")


def consumer(number: int, key: PrivateKey) -> Consumer:
    """Make a consumer with a sealed key."""
    sealed = Sealer("bench", [key.public_key]).seal(f"key-{number}".encode(), Purpose.CREDENTIAL).of("bench")
    return Consumer(
        key=f"c1/default/consumer-{number}",
        name=f"default_consumer-{number}",
        credentials=(Credential(use=PluginUse(name="key-auth", secrets={"key": sealed})),),
        provenance=Provenance(cluster="c1", kind="ApisixConsumer", namespace="default", name=f"consumer-{number}"),
    )


def staged(compiler: TableCompiler, image: TableImage) -> tuple[TableUpdate, dict[str, bytes]]:
    """Begin an update to an image."""
    chunks = image.chunks()
    names = [ChunkName(kind=chunk.kind, prefix=chunk.prefix, digest=chunk.digest) for chunk in chunks]
    return compiler.stage(Version(1, 1), names), {chunk.digest: chunk.content for chunk in chunks}


def durations(steps: Iterator[None]) -> Iterator[float]:
    """Take steps, and yield the seconds of each."""
    began = time.process_time()
    for _ in steps:
        yield time.process_time() - began
        began = time.process_time()
    yield time.process_time() - began


def per_request(chain: PluginChain, count: int, draw: Callable[[], str]) -> float:
    """Return the microseconds that a chain takes for a request with a browser's head."""
    per_round = count // ROUNDS

    def once() -> float:
        requests = [Request(headers=Headers([*HEAD, ("apikey", draw())])) for _ in range(per_round)]
        began = time.process_time()
        for request in requests:
            chain.on_request(request)
        return time.process_time() - began

    return min(once() for _ in range(ROUNDS)) / per_round * 1e6


def per_part(work: Callable[[], object], size: int) -> float:
    """Return the microseconds of one of `size` parts of some work."""

    def once() -> float:
        began = time.process_time()
        work()
        return time.process_time() - began

    return min(once() for _ in range(ROUNDS)) / size * 1e6


if __name__ == "__main__":
    main()
