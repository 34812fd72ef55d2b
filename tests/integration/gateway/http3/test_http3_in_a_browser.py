"""Chromium over HTTP/3, with a certificate that it is told to trust."""

import asyncio
import base64
import hashlib

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from playwright.async_api import async_playwright

from fakes.browser import CHROMIUM, needs_chromium
from fakes.gateway.proxied import Conversation
from fakes.gateway.served import at, origins, served, site
from fakes.gateway.tls import Authority, Issued
from headgate.common.secret import Secret
from headgate.gateway.tls import CertificateEntry

HOST = "browser.example"
PAGE = b"<!doctype html><title>page</title><body></body>"
BIG = 300_000


async def origin_of_a_page(conversation: Conversation) -> None:
    while True:
        head, body = await conversation.request()
        answer = b"%d" % len(body) if head.startswith(b"POST") else PAGE
        await conversation.send(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%b" % (len(answer), answer)
        )


def trusted(issued: Issued) -> str:
    """The certificate's key as Chromium is told to trust it."""
    leaf = x509.load_pem_x509_certificate(issued.chain_pem)
    key = leaf.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(hashlib.sha256(key).digest()).decode()


@needs_chromium
async def test_pages_and_uploads_come_by_h3() -> None:
    issued = Authority().issue(HOST, x509.DNSName(HOST))
    entry = CertificateEntry((HOST,), issued.chain_pem.decode(), Secret(issued.key_pem), "one", "one", "")
    async with (
        origins(origin_of_a_page) as (origin,),
        served(at(origin.port), site(host=HOST), http3=True) as proxy,
        async_playwright() as playwright,
    ):
        proxy.certificates.set_certificates([entry])
        flags = [
            "--no-sandbox",
            "--disable-gpu",
            "--enable-quic",
            f"--origin-to-force-quic-on={HOST}:{proxy.https_port}",
            f"--host-resolver-rules=MAP {HOST} 127.0.0.1",
            f"--ignore-certificate-errors-spki-list={trusted(issued)}",
        ]
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        try:
            page = await browser.new_page()
            url = f"https://{HOST}:{proxy.https_port}/"
            async with asyncio.timeout(60):
                await page.goto(url)
                assert await page.title() == "page"
                lengths = await page.evaluate(
                    """async (size) => Promise.all([...Array(8).keys()].map(async (n) =>
                        (await fetch('/up', {method: 'POST', body: 'x'.repeat(size + n)})).text()))""",
                    BIG,
                )
            assert lengths == [str(BIG + number) for number in range(8)]
            protocols = await page.evaluate("performance.getEntries().map((each) => each.nextHopProtocol)")
            assert {each for each in protocols if each} == {"h3"}
            assert all(b"3.0" in record for record in proxy.log.records)
        finally:
            await browser.close()
