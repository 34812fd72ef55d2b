"""Small forms: fields with their texts."""

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError


async def read_fields(request: web.Request) -> dict[str, str]:
    """Return the fields of a form.

    Raises:
        web.HTTPBadRequest: it is none.
    """
    try:
        return {name: str(value) for name, value in (await request.post()).items()}
    except (ValueError, LookupError, AssertionError, RuntimeError, HttpProcessingError) as error:
        raise web.HTTPBadRequest(text=f"the form cannot be read: {error}\n") from None
