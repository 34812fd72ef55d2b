"""An image with one program, as a tar of Docker's form on standard output: `image.py PROGRAM NAME`."""

import hashlib
import io
import json
import sys
import tarfile
from pathlib import Path


def add(archive: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    """Add a file."""
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))


def make(program: bytes, file: str, name: str) -> bytes:
    """Return the image; equal arguments make equal images."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as archive:
        add(archive, file, program, 0o755)
    digest = hashlib.sha256(layer.getvalue()).hexdigest()
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Entrypoint": [f"/{file}"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
    }
    image = io.BytesIO()
    with tarfile.open(fileobj=image, mode="w") as archive:
        add(archive, "layer.tar", layer.getvalue())
        add(archive, "config.json", json.dumps(config).encode())
        manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
        add(archive, "manifest.json", json.dumps(manifest).encode())
    return image.getvalue()


if __name__ == "__main__":
    sys.stdout.buffer.write(make(Path(sys.argv[1]).read_bytes(), Path(sys.argv[1]).name, sys.argv[2]))
