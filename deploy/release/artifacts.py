"""What a release consists of: wheels, chart, images, bill of materials, kubectl plugin."""

import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from deploy.release.versions import DISTRIBUTIONS, ROOT

COMPILED: Final = "services/gateway"
LOADED: Final = "proxy.clock"
"""A compiled module that imports nothing from outside the standard library."""
IMAGES: Final = ("watcher", "translator", "gateway", "console", "headgate")
TOOLS: Final = ROOT / ".venv-release"
LOCK: Final = ROOT / "deploy" / "release" / "requirements.lock"
KREW: Final = ROOT / "deploy" / "krew"


class Missing(Exception):
    """A program that a step needs is not there; the text says which and how to get it."""


def run(*command: str, environment: Mapping[str, str] | None = None) -> None:
    """Run a step's program in the checkout."""
    given = {**os.environ, **(environment or {})}
    subprocess.run(command, check=True, cwd=ROOT, env=given)  # noqa: S603 - commands stand in this file


def output(*command: str) -> str:
    """Return what a program prints."""
    done = subprocess.run(command, check=True, cwd=ROOT, capture_output=True, text=True)  # noqa: S603
    return done.stdout.strip()


def require(program: str, remedy: str) -> str:
    """Return a program's path. Raises Missing."""
    found = shutil.which(os.environ.get(program.upper(), program))
    if found is None:
        raise Missing(f"{program} is not there: {remedy}")
    return found


def tools() -> Path:
    """Return the folder of the programs that only a release needs, installed by their lock file if need be."""
    stamp = TOOLS / LOCK.name
    if not stamp.exists() or stamp.read_bytes() != LOCK.read_bytes():
        run(sys.executable, "-m", "venv", str(TOOLS))
        pip = (str(TOOLS / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check")
        run(*pip, "--require-hashes", "--requirement", str(LOCK))
        stamp.write_bytes(LOCK.read_bytes())
    return TOOLS / "bin"


def wheels(folder: Path, distributions: Sequence[str] = DISTRIBUTIONS) -> None:
    """Build a wheel and a source distribution of each part, of the commit's time: made again they are the same."""
    epoch = {"SOURCE_DATE_EPOCH": output("git", "log", "-1", "--format=%ct")}
    for part in distributions:
        build = (sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--target", "wheel")
        # Without hooks nothing is compiled: the wheel for every platform.
        command = ("env", "-C", str(ROOT / part), *build, "--directory", str(folder))
        run(*command, environment={**epoch, "HATCH_BUILD_NO_HOOKS": "true"})


def compiled_wheel(folder: Path) -> None:
    """Build the gateway's wheel with the proxy compiled, for this Python, and as old a C library as it runs on.

    Without auditwheel it gets the plain tag of this platform, which an index refuses: for machines like this one.
    """
    epoch = {"SOURCE_DATE_EPOCH": output("git", "log", "-1", "--format=%ct"), "HEADGATE_ENGINE": "compiled"}
    raw = folder / "raw"
    build = (sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(raw))
    run("env", "-C", str(ROOT / COMPILED), *build, environment=epoch)
    (made,) = raw.glob("*.whl")
    try:
        programs = tools()
    except subprocess.CalledProcessError:
        print(f"auditwheel cannot be installed: {made.name} is for machines with the C library of this one")
        wheel = made.replace(folder / made.name)
    else:
        path = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
        run(str(programs / "auditwheel"), "repair", "--wheel-dir", str(folder), str(made), environment=path)
        (wheel,) = (path for path in folder.glob("headgate_ingress_gateway-*.whl") if "-none-any" not in path.name)
    shutil.rmtree(raw)
    require_engine(wheel)
    print(f"{wheel}: its engine is compiled")


def require_engine(wheel: Path) -> None:
    """Install a wheel of the gateway where nothing else is, and load its engine. Raises CalledProcessError."""
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, "-m", "venv", folder)
        run(f"{folder}/bin/pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", str(wheel))
        load = f"import headgate.gateway.{LOADED}, sys; sys.exit(headgate.gateway.ENGINE != 'compiled')"
        environment = {"HEADGATE_ENGINE": "compiled", "PYTHONPATH": ""}
        run("env", "-C", folder, f"{folder}/bin/python", "-c", load, environment=environment)


def chart(folder: Path, version: str) -> None:
    """Package the chart."""
    helm = require("helm", "go install helm.sh/helm/v3/cmd/helm@v3.22.0, or name it: HELM=/path/to/helm")
    run(helm, "package", "deploy/helm/headgate", "--version", version, "--app-version", version, "-d", str(folder))


def images(folder: Path, version: str, registry: str) -> None:
    """Build the images, and note what each is: `images.txt` has name and digest of each."""
    docker = require("docker", "install Docker's engine (docs/compose.md)")
    revision = output("git", "rev-parse", "HEAD")
    lines = []
    for name in IMAGES:
        tag = f"{registry}/{name}:{version}"
        label = f"org.opencontainers.image.revision={revision}"
        arguments = ("--build-arg", f"VERSION={version}", "--label", label, "--target", name, "--tag", tag)
        run(docker, "build", *arguments, ".")
        lines.append(f"{tag} {output(docker, 'image', 'inspect', '--format', '{{.Id}}', tag)}\n")
    (folder / "images.txt").write_text("".join(lines))


def bill_of_materials(folder: Path, version: str) -> None:
    """Write what the services depend on, with versions and hashes, as CycloneDX."""
    target = folder / f"headgate-{version}.cdx.json"
    run(str(tools() / "cyclonedx-py"), "requirements", "requirements.lock", "--output-file", str(target))


def krew(folder: Path, version: str) -> None:
    """Pack the kubectl plugin, and write its manifest for krew with the digest of the package."""
    target = folder / f"kubectl-headgate-{version}.tar.gz"
    target.write_bytes(_archive([KREW / "kubectl-headgate", ROOT / "LICENSE"]))
    digest = hashlib.sha256(target.read_bytes()).hexdigest()
    text = (KREW / "headgate.yaml").read_text()
    (folder / "krew-headgate.yaml").write_text(text.replace("@VERSION@", version).replace("@SHA256@", digest))


def _archive(files: Sequence[Path]) -> bytes:
    """Return a tar.gz that depends on the files' names, modes and contents alone."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        for path in files:
            entry = tarfile.TarInfo(path.name)
            entry.size, entry.mode = path.stat().st_size, 0o755 if os.access(path, os.X_OK) else 0o644
            archive.addfile(entry, io.BytesIO(path.read_bytes()))
    return gzip.compress(plain.getvalue(), mtime=0)
