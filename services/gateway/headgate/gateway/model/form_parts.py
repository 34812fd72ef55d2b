"""The fields of a form in parts (`multipart/form-data`, RFC 7578)."""

import logging

# It has a line for every body that is malformed.
logging.getLogger("python_multipart").setLevel(logging.CRITICAL)


def read_parts(body: bytes, content_type: str, limit: int) -> list[tuple[str, bytes]]:
    """Return the names and contents of the parts in their order; the name of one that has none is empty.

    Raises:
        ValueError: it is no such body, is not whole, or has more parts than `limit`.
    """
    # Imported for those who need it.
    from python_multipart.exceptions import FormParserError
    from python_multipart.multipart import parse_options_header

    _, options = parse_options_header(content_type)
    parts = _Parts(limit)
    try:
        parts.read(options.get(b"boundary", b""), body)
    except (FormParserError, ValueError):
        raise ValueError("it is no body in parts, or Content-Type names no boundary") from None
    if not parts.is_whole:
        raise ValueError("its last part does not end")
    return parts.fields


class _Parts:
    """What a parser tells of the parts of a body; those without a name do not count."""

    def __init__(self, limit: int) -> None:
        self.fields: list[tuple[str, bytes]] = []
        self.is_whole = False
        self._limit = limit
        self._header = b""
        self._value = b""
        self._name: bytes | None = None
        self._text: list[bytes] = []

    def read(self, boundary: bytes, body: bytes) -> None:
        """Parse. Raises FormParserError, ValueError."""
        from python_multipart.multipart import MultipartParser

        parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._begin,
                "on_header_field": self._header_field,
                "on_header_value": self._header_value,
                "on_header_end": self._header_end,
                "on_part_data": self._data,
                "on_part_end": self._part_end,
                "on_end": self._end,
            },
        )
        parser.write(body)
        parser.finalize()

    def _begin(self) -> None:
        if len(self.fields) >= self._limit:
            raise ValueError("too many parts")
        self._name = None
        self._text = []

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _header_end(self) -> None:
        from python_multipart.multipart import parse_options_header

        if self._header.lower() == b"content-disposition":
            _, options = parse_options_header(self._value)
            self._name = options.get(b"name")
        self._header = self._value = b""

    def _data(self, data: bytes, start: int, end: int) -> None:
        self._text.append(data[start:end])

    def _part_end(self) -> None:
        name = self._name
        self.fields.append(("" if name is None else name.decode("utf-8", "replace"), b"".join(self._text)))

    def _end(self) -> None:
        self.is_whole = True
