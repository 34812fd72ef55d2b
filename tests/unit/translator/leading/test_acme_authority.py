"""Talking to an authority that answers by a script, over the library's own session."""

import json
from typing import Any

import pytest
import requests
from cryptography.hazmat.primitives.asymmetric import ec
from requests.adapters import BaseAdapter

from headgate.translator.leading.acme.authority import Authority
from headgate.translator.leading.acme.errors import OrderFailed
from headgate.translator.world.acme_settings import ResolverSettings

URL = "https://ca.test"
SETTINGS = ResolverSettings(directory=f"{URL}/directory", email="ops@a.test")
DIRECTORY = {"newNonce": f"{URL}/nonce", "newAccount": f"{URL}/account", "newOrder": f"{URL}/order"}


class SimulatedAuthority(BaseAdapter):
    """Registers accounts, after it refused some requests."""

    def __init__(self, refused: int, problem: str) -> None:
        super().__init__()
        self.left, self.problem = refused, problem
        self.posts = 0

    def send(self, request: requests.PreparedRequest, *_args: Any, **_options: Any) -> requests.Response:
        answer = requests.Response()
        answer.request, answer.url, answer.status_code = request, request.url or "", 200
        answer.headers["Replay-Nonce"] = "AAAA"
        body: object = DIRECTORY
        if request.method == "POST":
            self.posts += 1
            body, answer.status_code = {"status": "valid"}, 201
            answer.headers["Location"] = f"{URL}/account/1"
            if self.left:
                self.left -= 1
                body, answer.status_code = {"type": f"urn:ietf:params:acme:error:{self.problem}", "detail": "no"}, 400
        kind = "application/problem+json" if answer.status_code == 400 else "application/json"
        answer.headers["Content-Type"] = kind
        answer._content = json.dumps(body).encode()
        return answer

    def close(self) -> None:
        pass


def opened(monkeypatch: pytest.MonkeyPatch, simulated: SimulatedAuthority) -> Authority:
    monkeypatch.setattr(requests.Session, "get_adapter", lambda *_, **__: simulated)
    authority = Authority(SETTINGS, ec.generate_private_key(ec.SECP256R1()))
    authority.open()
    return authority


@pytest.mark.parametrize("refused", [0, 1, 2, 9])
def test_nonces_that_are_refused_in_a_row_are_replaced(monkeypatch: pytest.MonkeyPatch, refused: int) -> None:
    simulated = SimulatedAuthority(refused, "badNonce")
    assert opened(monkeypatch, simulated).uri == f"{URL}/account/1"
    assert simulated.posts == refused + 1


@pytest.mark.parametrize(("problem", "posts"), [("badNonce", 10), ("unauthorized", 1)])
def test_an_authority_that_goes_on_refusing_fails_the_order(
    monkeypatch: pytest.MonkeyPatch, problem: str, posts: int
) -> None:
    simulated = SimulatedAuthority(100, problem)
    with pytest.raises(OrderFailed, match=problem):
        opened(monkeypatch, simulated)
    assert simulated.posts == posts
