"""`csrf`: take writes only from pages that hold a cookie of ours, and show that they can read it.

Every answer sets a signed token as a cookie. A request that is not GET, HEAD or OPTIONS has to send it twice, in the
cookie and in a header of the same name, which pages of other origins cannot; else it is answered with 401.
"""

import base64
import hashlib
import hmac
import json
import secrets
import time
from email.utils import formatdate

from headgate.common.plugins.security.csrf import CsrfConfig
from headgate.gateway.plugins.interface import Plugin, PluginServices, Request, Response
from headgate.gateway.plugins.interface.variables import cookie_value

_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


class Csrf(Plugin[CsrfConfig]):
    """Gives tokens and asks for them."""

    name = "csrf"
    order = 2980
    Config = CsrfConfig
    preview = "yes"
    is_shareable = True
    waits_for_consumer = True

    def __init__(self, config: CsrfConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._key = config.key.reveal().encode()

    def on_request(self, request: Request) -> Response | None:
        """Refuse a write without a token."""
        if request.method in _SAFE_METHODS:
            return None
        fault = self._fault(request)
        return Response.json(401, {"error_msg": fault}, reason=fault) if fault else None

    def on_response(self, request: Request, response: Response) -> None:
        """Give a new token."""
        now = time.time()
        expires = formatdate(now + self.config.expires, usegmt=True) if self.config.expires else ""
        ending = f";Expires={expires}" if expires else ""
        response.headers.add("Set-Cookie", f"{self.config.name}={self._make(int(now))};path=/;SameSite=Lax{ending}")

    def _fault(self, request: Request) -> str:
        name = self.config.name
        sent = request.headers.get(name)
        if not sent:
            return "no csrf token in headers"
        kept = cookie_value("; ".join(request.headers.get_all("Cookie")), name)
        if not kept:
            return "no csrf cookie"
        if not hmac.compare_digest(sent.encode("latin-1"), kept.encode("latin-1")):
            return "csrf token mismatch"
        return "" if self._is_ours(sent) else "Failed to verify the csrf token signature"

    def _make(self, now: int) -> str:
        content = {"random": secrets.token_hex(8), "expires": now}
        token = {**content, "sign": self._sign(content["random"], now)}
        return base64.b64encode(json.dumps(token).encode()).decode()

    def _sign(self, drawn: object, issued: object) -> str:
        return hmac.new(self._key, f"{drawn}.{issued}".encode(), hashlib.sha256).hexdigest()

    def _is_ours(self, text: str) -> bool:
        try:
            token = json.loads(base64.b64decode(text, validate=True))
            drawn, issued, sign = token["random"], int(token["expires"]), str(token["sign"])
        except (ValueError, OverflowError, KeyError, TypeError, RecursionError):
            return False
        if self.config.expires and time.time() - issued > self.config.expires:
            return False
        return hmac.compare_digest(sign.encode(), self._sign(drawn, issued).encode())
