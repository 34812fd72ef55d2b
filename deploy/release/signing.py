"""Digests of what is published, and their signature.

One file of SHA-256 digests is signed with an SSH key (`ssh-keygen -Y`), which needs no service and no network; anyone
who has the public key verifies it with what every machine has.
"""

import hashlib
import subprocess
from pathlib import Path
from typing import Final

SUMS: Final = "SHA256SUMS"
SIGNATURE: Final = f"{SUMS}.sig"
NAMESPACE: Final = "headgate-release"
IDENTITY: Final = "headgate"


def write_sums(folder: Path) -> Path:
    """Write the digests of all files of a folder, as `sha256sum --check` reads them."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name not in (SUMS, SIGNATURE))
    path = folder / SUMS
    path.write_text("".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files))
    return path


def wrong_sums(folder: Path) -> list[str]:
    """Say which files are missing, changed or unknown to the digests."""
    wanted = {name: digest for digest, name in (line.split() for line in (folder / SUMS).read_text().splitlines())}
    there = {path.name: path for path in folder.iterdir() if path.name not in (SUMS, SIGNATURE)}
    wrong = [f"{name}: missing" for name in wanted.keys() - there.keys()]
    wrong += [f"{name}: not in {SUMS}" for name in there.keys() - wanted.keys()]
    wrong += [
        f"{name}: changed"
        for name in wanted.keys() & there.keys()
        if hashlib.sha256(there[name].read_bytes()).hexdigest() != wanted[name]
    ]
    return sorted(wrong)


def sign(folder: Path, key: Path) -> Path:
    """Sign the digests of a folder with an SSH private key.

    Raises:
        subprocess.CalledProcessError: ssh-keygen refused; its words are on stderr.
    """
    command = ["ssh-keygen", "-q", "-Y", "sign", "-f", str(key), "-n", NAMESPACE, str(folder / SUMS)]
    (folder / SIGNATURE).unlink(missing_ok=True)
    subprocess.run(command, check=True)  # noqa: S603 - of arguments that stand above
    return folder / SIGNATURE


def is_signed(folder: Path, allowed_signers: Path) -> bool:
    """Whether the digests of a folder bear the signature of an allowed key.

    Args:
        folder: with digests and signature.
        allowed_signers: lines such as `headgate ssh-ed25519 AAAA…` (ssh-keygen(1), ALLOWED SIGNERS).
    """
    command = ["ssh-keygen", "-q", "-Y", "verify", "-f", str(allowed_signers), "-I", IDENTITY, "-n", NAMESPACE]
    with (folder / SUMS).open("rb") as content:
        done = subprocess.run(  # noqa: S603 - of arguments that stand above
            [*command, "-s", str(folder / SIGNATURE)], stdin=content, capture_output=True, check=False
        )
    return done.returncode == 0
