"""Files of users and hashed passwords, as `htpasswd` writes them and nginx reads them.

A line is `name:hash`, and a comment may follow behind another colon. Hashes are bcrypt, Apache's MD5 (`$apr1$`),
`{SHA}`, `{SSHA}`, `{PLAIN}`, and those of `crypt(3)`: DES, `$1$`, `$5$` and `$6$`.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

BCRYPT = ("$2y$", "$2a$", "$2b$")
APR1 = "$apr1$"
SHA = ("{SHA}", "{SSHA}")
PLAIN = "{PLAIN}"
SHA_CRYPT = ("$5$", "$6$")
MAX_BCRYPT_COST: Final = 14
"""About a second of a core for each check; `htpasswd -B` makes 5, most programs 10 to 12."""
MAX_CRYPT_ROUNDS: Final = 200_000
"""Of `$5$` and `$6$`: about 0.2 s. Without a number these have 5,000."""
_CRYPT: Final = re.compile(
    r"(?:[./0-9A-Za-z]{13}"
    r"|\$1\$[^$:]{0,8}\$[./0-9A-Za-z]{22}"
    r"|\$(?:5\$(?:rounds=([0-9]+)\$)?[^$:]{0,16}\$[./0-9A-Za-z]{43}|6\$(?:rounds=([0-9]+)\$)?[^$:]{0,16}\$[./0-9A-Za-z]{86}))"
)


def check_hash(kept: str) -> None:
    """Look at what stands behind the name in a line. Raises ValueError, without the hash in its text."""
    if kept.startswith(BCRYPT):
        _check_bcrypt(kept)
    elif kept.startswith(SHA):
        try:
            decoded = base64.b64decode(kept.partition("}")[2], validate=True)
        except binascii.Error:
            decoded = b""
        if len(decoded) < 20:
            raise ValueError("this SHA hash is not whole")
    elif not kept.startswith((APR1, PLAIN)):
        _check_crypt(kept)


def _check_bcrypt(kept: str) -> None:
    if len(kept.encode()) != 60:
        raise ValueError("this bcrypt hash is not whole")
    cost = kept[4:6]
    if not cost.isdecimal() or not 4 <= int(cost) <= MAX_BCRYPT_COST:
        raise ValueError(f"this bcrypt hash has the cost {cost}; from 4 to {MAX_BCRYPT_COST} are taken")


def _check_crypt(kept: str) -> None:
    found = _CRYPT.fullmatch(kept)
    if found is None:
        raise ValueError("this kind of hash is not supported; make one with `htpasswd -B` (bcrypt)")
    rounds = found[1] or found[2]
    if rounds is not None and (len(rounds) > 6 or not 1000 <= int(rounds) <= MAX_CRYPT_ROUNDS):
        raise ValueError(f"this hash has {rounds[:12]} rounds; from 1000 to {MAX_CRYPT_ROUNDS} are taken")


def check_hash_of(name: str, kept: str) -> None:
    """Do the same, with the user's name in the error."""
    try:
        check_hash(kept)
    except ValueError as error:
        raise ValueError(f"user {name}: {error}") from None


def read_htpasswd(content: str, *, skip_invalid: bool = False) -> list[tuple[str, str]]:
    """Return names and hashes of a file, of which the hashes are not checked.

    Raises ValueError for a line without a colon, unless such lines are skipped.
    """
    users = []
    for line in content.splitlines():
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        name, colon, kept = text.partition(":")
        if colon:
            users.append((name, kept.partition(":")[0]))
        elif not skip_invalid:
            raise ValueError("a line of htpasswd is not `name:hash`")
    return users


def usable_hashes(users: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the users whose hashes can be used."""
    for name, kept in users:
        with suppress(ValueError):
            check_hash(kept)
            yield name, kept
