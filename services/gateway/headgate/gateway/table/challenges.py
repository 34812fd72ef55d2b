"""Challenges compiled: routes that answer an authority with what proves that a host is ours (RFC 8555, section 8.3)."""

from typing import NamedTuple

from headgate.common.plugins.transformation.mocking import MockingConfig
from headgate.common.table import CHALLENGE_PATH, Challenge, PathMatch, PathType, PluginUse, Provenance, Route
from headgate.gateway.model.steps import Steps
from headgate.gateway.table.backends import Holders, MakeHooks
from headgate.gateway.table.chunks import decode_entry
from headgate.gateway.table.compile import compile_route
from headgate.gateway.table.route import CompiledRoute


class AnsweredChallenge(NamedTuple):
    """Where a challenge is answered, and by what."""

    host: bytes
    path: bytes
    route: CompiledRoute


def compile_challenge(raw: bytes, holders: Holders, make_hooks: MakeHooks) -> Steps[tuple[str, AnsweredChallenge]]:
    """Compile an encoded challenge in steps.

    Raises:
        DecodeError: it does not follow the contract.
    """
    entry = decode_entry(Challenge, raw)
    path = CHALLENGE_PATH + entry.token
    answer = MockingConfig(
        content_type="application/octet-stream", response_example=entry.answer, with_mock_header=False
    )
    route = Route(
        name="challenge",
        path=PathMatch(type=PathType.EXACT, value=path),
        plugins=(PluginUse.of(answer),),
        provenance=Provenance(cluster="", kind="Challenge", namespace="", name=entry.host),
    )
    _, compiled = yield from compile_route(entry.host, route, holders, None, make_hooks)
    # Counted as one, as tokens are new with every order.
    compiled.name = "challenge"
    return entry.key, AnsweredChallenge(entry.host.encode(), path.encode(), compiled)
