"""Talking to an authority, by certbot's library `acme`. Everything here blocks, and is called in threads."""

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final, NamedTuple

import acme.client
import acme.errors
import requests
from acme import challenges, messages
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from josepy.errors import DeserializationError
from josepy.jwa import ES256
from josepy.jwk import JWK, JWKEC

from headgate.common.release import release
from headgate.translator.leading.acme.errors import OrderFailed
from headgate.translator.world.resolver_settings import ResolverSettings

_TIMEOUT_S: Final = 30
_ORDER_LIMIT: Final = timedelta(seconds=120)
_SHOWN: Final = 300
_NONCE_ROUNDS: Final = 5


class Proof(NamedTuple):
    """What shows that a name is ours."""

    host: str
    token: str
    key_authorization: str
    record: str
    """Value of the TXT record at `_acme-challenge.<host>`, for dns-01."""
    challenge: messages.ChallengeBody


class Order(NamedTuple):
    """An order under way."""

    resource: messages.OrderResource
    proofs: tuple[Proof, ...]


class _AlpnResponse(challenges.KeyAuthorizationChallengeResponse):
    typ = "tls-alpn-01"


@challenges.Challenge.register
class _Alpn(challenges.KeyAuthorizationChallenge):
    """TLS-ALPN-01, which the library has no class for."""

    response_cls = _AlpnResponse
    typ = response_cls.typ

    def validation(self, account_key: JWK, **unused: Any) -> str:
        return self.key_authorization(account_key)


class _Network(acme.client.ClientNetwork):
    """Remembers how long the authority last wanted us to wait, and is patient about nonces."""

    retry_after: timedelta | None = None

    def post(self, *args: Any, **kwargs: Any) -> requests.Response:
        # The library sends again once. Authorities with several servers refuse nonces in a row, and a whole order
        # would wait for its next turn because of it.
        for _ in range(_NONCE_ROUNDS - 1):
            try:
                return super().post(*args, **dict(kwargs))
            except messages.Error as error:
                if error.code != "badNonce":
                    raise
        return super().post(*args, **kwargs)

    def _send_request(self, method: str, url: str, *args: Any, **kwargs: Any) -> requests.Response:
        response = super()._send_request(method, url, *args, **kwargs)
        self.retry_after = None if response.ok else read_retry_after(response.headers.get("Retry-After", ""))
        return response


class Authority:
    """One account with one authority."""

    def __init__(self, settings: ResolverSettings, key: ec.EllipticCurvePrivateKey, uri: str = "") -> None:
        """Prepare.

        Args:
            settings: of the resolver.
            key: of the account.
            uri: of the account; empty: it is to be registered.
        """
        self._settings = settings
        self._jwk = JWKEC(key=key)
        verify: Any = str(settings.ca_file) if settings.ca_file is not None else True
        self._network = _Network(
            self._jwk, alg=ES256, verify_ssl=verify, user_agent=f"headgate/{release()}", timeout=_TIMEOUT_S
        )
        self.uri = uri
        self._client: acme.client.ClientV2 | None = None

    def open(self) -> None:
        """Find out where the authority is asked for what, and register the account if it is new.

        Raises:
            OrderFailed: not now, or not at all.
        """
        with self._failing():
            if self._client is None:
                directory = acme.client.ClientV2.get_directory(self._settings.url, self._network)
                self._client = acme.client.ClientV2(directory, self._network)
            if not self.uri:
                data = messages.NewRegistration.from_data(
                    email=self._settings.email or None,
                    terms_of_service_agreed=True,
                    external_account_binding=self._binding(self._client.directory),
                )
                try:
                    self.uri = self._client.new_account(data).uri
                except acme.errors.ConflictError as error:
                    self.uri = error.location
            self._network.account = messages.RegistrationResource(body=messages.Registration(), uri=self.uri)

    def _binding(self, directory: messages.Directory) -> dict[str, Any] | None:
        """Return what binds the account to one that the authority knows (RFC 8555, section 7.3.4)."""
        settings = self._settings
        if settings.eab_key_file is None:
            if getattr(directory.meta, "external_account_required", False):
                raise OrderFailed(
                    "the authority takes accounts only that are bound to one it knows: set eab_key_id and eab_key_file"
                )
            return None
        try:
            key = settings.eab_key_file.read_text(encoding="ascii").strip()
            return messages.ExternalAccountBinding.from_data(
                self._jwk.public_key(), settings.eab_key_id, key, directory
            )
        except OSError as error:
            raise OrderFailed(f"eab_key_file {settings.eab_key_file}: {error.strerror}") from error
        except (ValueError, DeserializationError) as error:
            raise OrderFailed(f"eab_key_file {settings.eab_key_file} holds no key in base64url") from error

    def begin(self, request_pem: bytes) -> Order:
        """Order a certificate; return what has to be shown. Raises OrderFailed."""
        with self._failing():
            resource = self._opened.new_order(request_pem)
            pending = [each for each in resource.authorizations if each.body.status == messages.STATUS_PENDING]
            return Order(resource, tuple(map(self._proof, pending)))

    def _proof(self, authorization: messages.AuthorizationResource) -> Proof:
        host, wanted = authorization.body.identifier.value, self._settings.challenge
        for body in authorization.body.challenges:
            if isinstance(body.chall, challenges.KeyAuthorizationChallenge) and body.chall.typ == wanted:
                record = body.chall.validation(self._jwk) if wanted == "dns-01" else ""
                token = body.chall.encode("token")
                return Proof(host, token, body.chall.key_authorization(self._jwk), record, body)
        offered = ", ".join(sorted(body.chall.typ for body in authorization.body.challenges))
        raise OrderFailed(f"the authority does not take {wanted} for {host}, but {offered}")

    def finish(self, order: Order) -> str:
        """Have the authority look, and return the chain in PEM. Raises OrderFailed."""
        with self._failing():
            for proof in order.proofs:
                chall = proof.challenge.chall
                assert isinstance(chall, challenges.KeyAuthorizationChallenge)
                self._opened.answer_challenge(proof.challenge, chall.response(self._jwk))
            # The library compares with local time.
            deadline = datetime.now() + _ORDER_LIMIT
            chain = self._opened.poll_and_finalize(order.resource, deadline).fullchain_pem
            if not chain:
                raise OrderFailed("the authority gave no certificate")
            return str(chain)

    def renewal_time(self, chain_pem: str) -> tuple[datetime | None, datetime]:
        """Return when the authority wants a certificate renewed (RFC 9773; None: it does not say), and when to ask
        again. Raises OrderFailed.
        """
        with self._failing():
            renew_at, ask_at = self._opened.renewal_time(chain_pem.encode())
            # The library gives the second in local time, without saying so.
            return None if renew_at is None else renew_at.astimezone(UTC), ask_at.astimezone(UTC)

    @property
    def _opened(self) -> acme.client.ClientV2:
        assert self._client is not None, "opened first"
        return self._client

    def _failing(self) -> "_Failing":
        return _Failing(self._network)


class _Failing:
    """Turns what the library raises into OrderFailed."""

    def __init__(self, network: _Network) -> None:
        self._network = network

    def __enter__(self) -> None:
        self._network.retry_after = None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, acme.errors.Error | requests.RequestException | DeserializationError | ValueError):
            raise OrderFailed(_described(error), self._network.retry_after) from error


def _described(error: Exception) -> str:
    if isinstance(error, acme.errors.ValidationError):
        reasons = (
            f"{each.body.identifier.value}: {_described(body.error)}"
            for each in error.failed_authzrs
            for body in each.body.challenges
            if body.error is not None
        )
        return "; ".join(reasons)[:_SHOWN]
    if isinstance(error, acme.errors.TimeoutError):
        return "the authority did not decide in time"
    if isinstance(error, messages.Error):
        return f"{error.code or error.typ}: {error.detail}"[:_SHOWN]
    return (str(error) or type(error).__name__)[:_SHOWN]


def read_retry_after(text: str) -> timedelta | None:
    """Read the header Retry-After: seconds or a date (RFC 9110, section 10.2.3); None if it is neither."""
    if text.isascii() and text.isdigit():
        return timedelta(seconds=min(int(text), 30 * 86400))
    try:
        return max(timedelta(), parsedate_to_datetime(text).astimezone(UTC) - datetime.now(UTC)) if text else None
    except ValueError:
        return None


def read_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    """Read an account's key. Raises ValueError."""
    key = serialization.load_pem_private_key(pem, None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("the key of an account is not one of P-256")
    return key
