"""What a body is, by its first bytes: the table of the WHATWG's MIME Sniffing as Go's `http.DetectContentType` has it.

https://mimesniff.spec.whatwg.org/ sections 6 and 7. Types of text are said to be in UTF-8, and what is neither text nor
in the table is `application/octet-stream`, as there.
"""

import re
from typing import Final

LOOKED_AT: Final = 512
"""Bytes that decide."""
_HTML: Final = re.compile(
    rb"[\t\n\f\r ]*+<(?:(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p)[ >]"
    rb"|!--[ >])",
    re.IGNORECASE,
)
_XML: Final = re.compile(rb"[\t\n\f\r ]*+<\?xml")
_BEGINNINGS: Final = tuple(
    (re.compile(pattern, re.DOTALL), media_type)
    for pattern, media_type in (
        (rb"%PDF-", "application/pdf"),
        (rb"%!PS-Adobe-", "application/postscript"),
        (rb"\xfe\xff..", "text/plain; charset=utf-16be"),
        (rb"\xff\xfe..", "text/plain; charset=utf-16le"),
        (rb"\xef\xbb\xbf.", "text/plain; charset=utf-8"),
        (rb"\0\0[\x01\x02]\0", "image/x-icon"),
        (rb"BM", "image/bmp"),
        (rb"GIF8[79]a", "image/gif"),
        (rb"RIFF....WEBPVP", "image/webp"),
        (rb"\x89PNG\r\n\x1a\n", "image/png"),
        (rb"\xff\xd8\xff", "image/jpeg"),
        (rb"FORM....AIFF", "audio/aiff"),
        (rb"ID3", "audio/mpeg"),
        (rb"OggS\0", "application/ogg"),
        (rb"MThd\0\0\0\x06", "audio/midi"),
        (rb"RIFF....AVI ", "video/avi"),
        (rb"RIFF....WAVE", "audio/wave"),
        (rb"\x1a\x45\xdf\xa3", "video/webm"),
        (rb".{34}LP", "application/vnd.ms-fontobject"),
        (rb"\0\x01\0\0", "font/ttf"),
        (rb"OTTO", "font/otf"),
        (rb"ttcf", "font/collection"),
        (rb"wOFF", "font/woff"),
        (rb"wOF2", "font/woff2"),
        (rb"\x1f\x8b\x08", "application/x-gzip"),
        (rb"PK\x03\x04", "application/zip"),
        (rb"Rar!\x1a\x07(?:\0|\x01\0)", "application/x-rar-compressed"),
        (rb"\0asm", "application/wasm"),
    )
)
_BINARY: Final = re.compile(rb"[\0-\x08\x0b\x0e-\x1a\x1c-\x1f]")


def content_type_of(begin: bytes) -> str:
    """Return the type of a body that begins so; of more than 512 bytes the first count."""
    begin = begin[:LOOKED_AT]
    if _HTML.match(begin):
        return "text/html; charset=utf-8"
    if _XML.match(begin):
        return "text/xml; charset=utf-8"
    for pattern, media_type in _BEGINNINGS:
        if pattern.match(begin):
            return media_type
    if _is_mp4(begin):
        return "video/mp4"
    return "application/octet-stream" if _BINARY.search(begin) else "text/plain; charset=utf-8"


def _is_mp4(begin: bytes) -> bool:
    """Tell whether a body begins with a box `ftyp` that has a brand `mp4...` (section 6.2.1)."""
    size = int.from_bytes(begin[:4], "big")
    if len(begin) < max(12, size) or size % 4 or begin[4:8] != b"ftyp":
        return False
    return any(begin[at : at + 3] == b"mp4" for at in range(8, size, 4) if at != 12)
