"""What a store gave for what was asked of it by digest."""

from collections.abc import Iterable, Sequence

from headgate.common.errors import NotFound


def all_found(what: str, digests: Iterable[str], found: Iterable[bytes | None]) -> Sequence[bytes]:
    """Return what was found if that is all.

    Args:
        what: is said of one in the error, with `{}` for its digest.
        digests: which were asked for.
        found: the content of each; None for one that the store lacks.

    Raises:
        NotFound: the store lacks one.
    """
    contents = list[bytes]()
    for digest, content in zip(digests, found, strict=True):
        if content is None:
            raise NotFound(f"{what.format(digest[:12])} is not in the store")
        contents.append(content)
    return contents
