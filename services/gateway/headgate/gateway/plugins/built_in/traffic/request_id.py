"""`request-id`: a name for each request, for logs of all that it passes."""

import secrets
import time
import uuid
from collections.abc import Callable
from typing import ClassVar, Final, Literal

from headgate.common.plugins.traffic.request_id import RequestIdConfig
from headgate.gateway.plugins.interface import Plugin, PluginConfig, PluginServices, Request, Response

_NANOID: Final = "useandom-26T198340PX75pxJACKVERYMINDBUSHWOLF_GQZbfghjklqvwyzrict"
_LETTERS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_AT_ONCE: Final = 256
_HYPHENS: Final = (8, 13, 18, 23)
"""Where they stand in the 36 characters of a UUID."""
_DIGITS: Final = [place for place in range(36) if place not in _HYPHENS]
_VARIANTS: Final = bytes.maketrans(b"0123456789abcdef", b"89ab" * 4)
"""Maps a random digit to one of the variant of RFC 9562, which keeps two random bits (section 4.1)."""
_KSUID_EPOCH_S: Final = 1_400_000_000


class RequestId(Plugin[RequestIdConfig]):
    """Names requests that come without a name."""

    name: ClassVar[str] = "request-id"
    order: ClassVar[int] = 12015
    Config: ClassVar[type[PluginConfig]] = RequestIdConfig
    is_shareable: ClassVar[bool] = True
    preview: ClassVar[Literal["no", "yes", "with-client", "passes"]] = "passes"

    def __init__(self, config: RequestIdConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._make = _maker(config)
        self._header_name = config.header_name
        self._is_own = config.header_name.lower() == "x-request-id"
        self._tells = config.include_in_response

    def on_request(self, request: Request) -> None:
        """Keep the name that the client gave, or make one."""
        name = self._header_name
        if self._is_own:
            if not request.is_id_given:
                request.id = self._make()
            request.variables["request-id"] = request.id
            return
        if name not in request.headers:
            request.headers.add(name, self._make())
        request.variables["request-id"] = request.headers.get(name)

    def on_response(self, request: Request, response: Response) -> None:
        """Tell the client."""
        made = request.variables.get("request-id")
        if self._tells and isinstance(made, str):
            response.headers.set_default(self._header_name, made)


def _maker(config: RequestIdConfig) -> Callable[[], str]:
    """Return what makes ids by the algorithm that was chosen."""
    drawn = config.range_id
    makers: dict[str, Callable[[], str]] = {
        "uuid": _uuid_v4,
        "nanoid": lambda: _drawn(_NANOID, 21),
        "range_id": lambda: _drawn(drawn.char_set, drawn.length),
        "ksuid": _ksuid,
        "uuidv7": _uuid_v7,
    }
    return makers[config.algorithm]


class _Uuids:
    """UUIDs of version 4 (RFC 9562 section 5.4), 122 random bits each, written some hundred at once."""

    def __init__(self) -> None:
        self._text = ""
        self._used = 0

    def make(self) -> str:
        """Give the next one."""
        used = self._used
        if used >= len(self._text):
            self._text, used = _write_uuids(_AT_ONCE), 0
        self._used = used + 36
        return self._text[used : used + 36]


def _write_uuids(count: int) -> str:
    """Write so many one behind the other, column by column: one by one they take more than twice the instructions."""
    digits = secrets.token_hex(16 * count).encode()
    text = bytearray(b"-" * (36 * count))
    for column, place in enumerate(_DIGITS):
        text[place::36] = digits[column::32]
    text[14::36] = b"4" * count
    text[19::36] = text[19::36].translate(_VARIANTS)
    return text.decode()


_UUIDS: Final = _Uuids()


def _uuid_v4() -> str:
    return _UUIDS.make()


def _drawn(characters: str, length: int) -> str:
    return "".join(secrets.choice(characters) for _ in range(length))


def _ksuid() -> str:
    """Make a KSUID: seconds and 128 random bits, 27 characters in base 62 that sort by time."""
    number = (int(time.time()) - _KSUID_EPOCH_S) << 128 | secrets.randbits(128)
    digits = []
    for _ in range(27):
        number, digit = divmod(number, 62)
        digits.append(_LETTERS[digit])
    return "".join(reversed(digits))


def _uuid_v7() -> str:
    """Make a UUID of version 7 (RFC 9562 section 5.7): milliseconds and 74 random bits."""
    number = time.time_ns() // 1_000_000 << 80 | secrets.randbits(80)
    number = number & ~(0xF << 76) | 7 << 76
    number = number & ~(3 << 62) | 2 << 62
    return str(uuid.UUID(int=number))
