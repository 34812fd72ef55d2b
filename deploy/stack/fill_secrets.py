"""What compose.yaml's service `secrets` runs: passwords and keys for the stack, made once, in volumes.

/made/all keeps all of them, and only this program mounts it. Each other folder of /made is the volume of one service
and has what that service reads; it is written again where it lacks something, so a lost volume comes back as it was.
The files are readable for all, as the containers' users are others, and each volume is mounted by its service alone.
"""

import hashlib
import json
import os
import re
import secrets
import shutil
import socket
import struct
import sys
from collections.abc import Mapping
from ipaddress import IPv4Network
from pathlib import Path

from headgate.common.sealing import PRIVATE_KEY_FILE, PUBLIC_KEY_FILE, load_or_create_key_pair

WATCHERS = ("watcher-local", "watcher-kubernetes")
NATS_USERS = ("admin", "reader", "operator", "translator", "gateway", *WATCHERS)
REDIS_USERS = ("translator", "gateway", "reader", "operator")
SERVICES = ("reader", "operator", "translator", "gateway", *WATCHERS)
"""Services of ours, each with its settings.toml."""


def load_or_create_passwords(folder: Path) -> dict[str, str]:
    """Return passwords by `nats/USER`, `redis/USER`, `grafana` and `console`; those that are not there yet are made."""
    path = folder / "passwords.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    names = (*(f"nats/{user}" for user in NATS_USERS), *(f"redis/{user}" for user in REDIS_USERS), "grafana", "console")
    passwords = {name: known.get(name) or secrets.token_hex(32) for name in names}
    write(path, json.dumps(passwords, indent=2))
    return passwords


def nats_files(passwords: Mapping[str, str], watcher_rights: str) -> dict[str, str]:
    """Return what NATS includes: passwords, and the rights of the watcher of each cluster."""
    lines = [f'{_variable(user)}_PASSWORD: "{passwords[f"nats/{user}"]}"\n' for user in NATS_USERS]
    other = watcher_rights.replace("local", "kubernetes").replace("LOCAL", "KUBERNETES")
    return {"passwords.conf": "".join(lines), "watcher-local.conf": watcher_rights, "watcher-kubernetes.conf": other}


def _variable(user: str) -> str:
    return user.upper().replace("-", "_")


def settings(service: str, passwords: Mapping[str, str], front: IPv4Network) -> str:
    """Return the settings of a service that hold a password, or depend on this machine."""
    lines = [f'nats_password = "{passwords[f"nats/{service}"]}"']
    if service in REDIS_USERS:
        lines.append(f'store_password = "{passwords[f"redis/{service}"]}"')
    if service == "gateway":
        lines.append(f'proxy_protocol_networks = ["{front}"]')
    return "\n".join(lines) + "\n"


def people(token: str) -> str:
    """Return the one who may come into the console: whoever has the token, and may change things."""
    digest = hashlib.sha256(token.encode()).hexdigest()
    return f'[[people]]\nname = "operator"\nrole = "operator"\nsha256 = "{digest}"\n'


def redis_users(users: str, passwords: Mapping[str, str]) -> str:
    """Return the users of Redis that the stack has, of deploy/redis/users.conf; such a file knows no comments."""
    kept = re.findall(rf"^user (?:default|{'|'.join(REDIS_USERS)}) .*$", users, re.MULTILINE)
    text = "\n".join(kept) + "\n"
    for user in REDIS_USERS:
        text = text.replace(f">{user}-password", f">{passwords[f'redis/{user}']}")
    return text


def attached_network(routes: str) -> IPv4Network:
    """Return the network that this container is in, of the kernel's /proc/net/route.

    Raises:
        ValueError: there is none, or more than one.
    """
    rows = [line.split() for line in routes.splitlines()[1:]]
    found = {IPv4Network((_address(row[1]), _address(row[7]))) for row in rows if row[7] != "00000000"}
    if len(found) != 1:
        raise ValueError(f"the container has to be in one network, and is in {len(found)}")
    return found.pop()


def _address(hexadecimal: str) -> str:
    """Return a dotted address of what the kernel prints: hexadecimal, in the machine's order of bytes."""
    return socket.inet_ntoa(struct.pack("=I", int(hexadecimal, 16)))


def write(path: Path, text: str) -> None:
    """Replace a file unless it is as it should be."""
    if path.exists() and path.read_text() == text:
        return
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(text)
    fresh.replace(path)


def fill(made: Path, sources: Path, routes: str) -> None:
    """Write everything.

    Args:
        made: the folder of the volumes.
        sources: the folder with watcher-local.conf and users.conf.
        routes: the kernel's table of routes.
    """
    passwords = load_or_create_passwords(made / "all")
    load_or_create_key_pair(made / "all")
    front = attached_network(routes)
    for name, text in nats_files(passwords, (sources / "watcher-local.conf").read_text()).items():
        write(made / "nats" / name, text)
    for service in SERVICES:
        write(made / service / "settings.toml", settings(service, passwords, front))
    for watcher in WATCHERS:
        write(made / watcher / PUBLIC_KEY_FILE, (made / "all" / PUBLIC_KEY_FILE).read_text())
    write(made / "gateway" / PRIVATE_KEY_FILE, (made / "all" / PRIVATE_KEY_FILE).read_text())
    write(made / "redis" / "users.acl", redis_users((sources / "users.conf").read_text(), passwords))
    write(made / "operator" / "people.toml", people(passwords["console"]))
    write(made / "operator" / "token", passwords["console"])
    write(made / "grafana" / "password", passwords["grafana"])


def main() -> int:
    """Fill the volumes; the health check is for images that have none of their own."""
    os.umask(0o022)
    made = Path("/made")
    try:
        fill(made, Path(__file__).parent, Path("/proc/net/route").read_text())
        program = shutil.which("healthcheck") or "healthcheck"
        if not (made / "tools" / "healthcheck").exists():
            shutil.copy(program, made / "tools" / "healthcheck.new")
            (made / "tools" / "healthcheck.new").replace(made / "tools" / "healthcheck")
    except (OSError, ValueError) as error:
        print(f"secrets: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
