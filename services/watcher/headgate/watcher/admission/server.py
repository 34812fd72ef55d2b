"""The webhook as the API server reaches it: `POST /validate` over TLS.

It executes nothing and reads nothing but the object that it is sent; how much it holds at once is bounded. Answers over
HTTP/1.1, which API servers speak to webhooks that offer nothing else.
"""

import asyncio
import logging
import math
import re
import time

from aiohttp import web

from headgate.common.errors import SettingsError
from headgate.watcher.admission.admit import Admission
from headgate.watcher.admission.certificate import CertificateSource
from headgate.watcher.admission.metrics import REVIEW_SECONDS
from headgate.watcher.admission.review import AdmissionRequest, ReviewError, make_answer, parse_review
from headgate.watcher.errors import CertificateUnusable
from headgate.watcher.publishing.requesters import Requesters

PATH = "/validate"
MAX_BODY = 7 * 1024 * 1024
"""API servers take requests of up to 3 MiB, and send an update's object twice."""
AT_ONCE = 32
"""Requests that are read or decided; more wait."""
READ_S = 5.0
_MARGIN = 0.9
"""Of the time that the API server gives us, what is used for the answer to be there in time."""
_TIMEOUT = re.compile(r"(?:([0-9]+)m(?!s))?(?:([0-9]+(?:\.[0-9]+)?)s)?(?:([0-9]+)ms)?")

_log = logging.getLogger(__name__)


class AdmissionServer:
    """Serves the webhook while `run` runs."""

    def __init__(
        self,
        admission: Admission,
        certificate: CertificateSource,
        host: str,
        port: int,
        deadline_s: float,
        requesters: Requesters | None = None,
    ) -> None:
        """Prepare.

        Args:
            admission: decides.
            certificate: of the server.
            host: address to bind; empty for all.
            port: port to bind; 0 takes a free one.
            deadline_s: seconds for an answer, if the API server does not give less.
            requesters: are told who asks for what is not refused.
        """
        self._admission, self._certificate = admission, certificate
        self._requesters = requesters
        self._host, self._deadline_s = host or None, deadline_s
        self.port = port
        """Port that was bound."""
        self._trouble: str | None = "not started yet"
        self._complaint = ""
        self._slots = asyncio.Semaphore(AT_ONCE)

    def readiness(self) -> str | None:
        """Readiness check: None while requests are answered."""
        return self._trouble

    async def run(self) -> None:
        """Serve until cancelled; waits for a certificate that can be used.

        Raises:
            SettingsError: the address cannot be bound.
        """
        await self._wait_for_certificate()
        app = web.Application(client_max_size=MAX_BODY)
        app.router.add_post(PATH, self._review)
        runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=2.0)
        await runner.setup()
        try:
            await self._bind(runner)
            self._trouble = None
            while True:
                await asyncio.sleep(self._certificate.pause_s)
                await self._refresh()
        finally:
            self._trouble = "stopped"
            await runner.cleanup()

    async def _bind(self, runner: web.AppRunner) -> None:
        try:
            await web.TCPSite(runner, self._host, self.port, ssl_context=self._certificate.context).start()
        except OSError as error:
            where = f"on {self._host}" if self._host else "on all addresses"
            raise SettingsError(
                f"admission_port: {self.port} cannot be bound {where}: {error.strerror or error}"
            ) from error
        self.port = runner.addresses[0][1]

    async def _wait_for_certificate(self) -> None:
        while not await self._refresh():  # noqa: ASYNC110 - neither files nor a Secret have events here
            await asyncio.sleep(self._certificate.pause_s)

    async def _refresh(self) -> bool:
        """Read the certificate again if it has changed; return whether a new one is in force."""
        try:
            is_new = await self._certificate.refresh()
        except CertificateUnusable as error:
            self._complain(str(error))
            return False
        self._complaint = ""
        if is_new:
            _log.info("the webhook's certificate was read")
        return is_new

    def _complain(self, text: str) -> None:
        if text != self._complaint:
            self._complaint = text
            _log.warning("the webhook's certificate cannot be used; trying on", extra={"reason": text})
        if self._trouble is not None:
            self._trouble = text

    async def _review(self, request: web.Request) -> web.Response:
        started = time.perf_counter()
        within_s = min(self._deadline_s, _MARGIN * read_timeout(request.query.get("timeout", "")))
        async with self._slots:
            try:
                async with asyncio.timeout(READ_S):
                    body = await request.read()
                asked = parse_review(body)
            except TimeoutError:
                return web.Response(status=408, text="the request did not arrive in time\n")
            except ReviewError as error:
                return web.Response(status=400, text=f"{error}\n")
            verdict = await self._admission.decide(asked, within_s)
        if verdict.refusal is None:
            self._note(asked)
        REVIEW_SECONDS.observe(time.perf_counter() - started)
        return web.json_response(make_answer(asked.uid, verdict.refusal, verdict.warnings))

    def _note(self, asked: AdmissionRequest) -> None:
        """Remember who asks, unless nothing will be stored by it."""
        manifest, user = asked.object, asked.user_info.username
        if self._requesters is None or asked.dry_run or asked.sub_resource or not user:
            return
        if isinstance(manifest, dict) and isinstance(manifest.get("metadata"), dict):
            self._requesters.note(asked.resource.group, asked.resource.resource, manifest, user)


def read_timeout(text: str) -> float:
    """Return the seconds of what API servers put into the query, `10s` or `1m30s`; infinite where there is none."""
    found = _TIMEOUT.fullmatch(text)
    minutes, seconds, thousandths = (float(part or 0) for part in found.groups()) if found else (0.0, 0.0, 0.0)
    return minutes * 60 + seconds + thousandths / 1000 or math.inf
