"""What a release consists of, as far as it is made without a network: versions, wheels, digests, signature, plugin."""

import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml
from deploy.release import artifacts, signing
from deploy.release.versions import ROOT, current, places, set_version, versions


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the files that name the version."""
    for place in places():
        target = tmp_path / place.path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(place.path, target)
    return tmp_path


def test_all_files_name_one_version() -> None:
    assert current() == "0.1.0"
    assert all(versions().values())


def test_a_version_is_written_into_all_of_them(checkout: Path) -> None:
    assert len(set_version("1.2.3", checkout)) == len(places())
    assert current(checkout) == "1.2.3"
    assert '"headgate-ingress-common==1.2.3"' in (checkout / "cli" / "pyproject.toml").read_text()
    assert set_version("1.2.3", checkout) == []


def test_files_that_disagree_are_named(checkout: Path) -> None:
    path = checkout / "Dockerfile"
    path.write_text(path.read_text().replace("ARG VERSION=0.1.0", "ARG VERSION=9.9.9"))
    with pytest.raises(ValueError, match=r"Dockerfile: 9\.9\.9"):
        current(checkout)


@pytest.mark.parametrize("version", ["", "1", "v1.2.3", "1.2.3-rc1", "1.2.3; rm"])
def test_what_is_no_version_is_refused(version: str, checkout: Path) -> None:
    with pytest.raises(ValueError, match="is no version"):
        set_version(version, checkout)


def test_a_wheel_has_licence_readme_types_and_no_binary(tmp_path: Path) -> None:
    artifacts.wheels(tmp_path, ["libs/common", "services/gateway"])
    common, gateway = sorted(tmp_path.glob("*.whl"))
    for wheel in (common, gateway):
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
            assert any(name.endswith("/licenses/LICENSE") for name in names)
            assert any(name.endswith("/py.typed") for name in names)
            assert not [name for name in names if name.endswith((".so", "compiled.json"))]
            (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
            assert "\n# headgate-ingress-" in archive.read(metadata).decode()
    with zipfile.ZipFile(common) as archive:
        assert "headgate_start.py" in archive.namelist()
    assert gateway.name.endswith("-py3-none-any.whl")


def test_the_same_commit_makes_the_same_wheel(tmp_path: Path) -> None:
    for name in ("one", "two"):
        artifacts.wheels(tmp_path / name, ["services/console"])
    one, two = (next((tmp_path / name).glob("*.whl")).read_bytes() for name in ("one", "two"))
    assert one == two


def test_digests_name_what_was_changed_added_and_removed(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_text(name)
    signing.write_sums(tmp_path)
    assert signing.wrong_sums(tmp_path) == []
    (tmp_path / "a").write_text("other")
    (tmp_path / "b").unlink()
    (tmp_path / "d").write_text("d")
    assert signing.wrong_sums(tmp_path) == ["a: changed", "b: missing", "d: not in SHA256SUMS"]


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not there")
def test_a_signature_is_that_of_an_allowed_key_over_these_digests(tmp_path: Path) -> None:
    key, signers, folder = tmp_path / "key", tmp_path / "signers", tmp_path / "dist"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    signers.write_text(f"{signing.IDENTITY} {key.with_suffix('.pub').read_text()}")
    folder.mkdir()
    (folder / "a").write_text("a")
    signing.write_sums(folder)
    signing.sign(folder, key)
    assert signing.is_signed(folder, signers)
    (folder / "a").write_text("b")
    signing.write_sums(folder)
    assert not signing.is_signed(folder, signers)


def test_the_kubectl_plugin_has_a_manifest_with_its_digest(tmp_path: Path) -> None:
    artifacts.krew(tmp_path, "1.2.3")
    plugin = yaml.safe_load((tmp_path / "krew-headgate.yaml").read_text())
    signing.write_sums(tmp_path)
    (platform,) = plugin["spec"]["platforms"]
    assert f"{platform['sha256']}  kubectl-headgate-1.2.3.tar.gz" in (tmp_path / signing.SUMS).read_text()
    assert plugin["spec"]["version"] == "v1.2.3"
    with tarfile.open(tmp_path / "kubectl-headgate-1.2.3.tar.gz") as archive:
        assert archive.getnames() == ["kubectl-headgate", "LICENSE"]
        assert archive.getmember("kubectl-headgate").mode == 0o755


def test_the_kubectl_plugin_says_what_to_install(tmp_path: Path) -> None:
    done = subprocess.run(
        ["/bin/sh", str(artifacts.KREW / "kubectl-headgate"), "status"],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr.count("\n")) == (127, 1)
    assert "pip install headgate-ingress" in done.stderr
