"""Settings of the watcher, and where it takes public keys from."""

import asyncio
import base64
from pathlib import Path

import pytest
from nacl.public import PrivateKey

from fakes.virtual_time import in_virtual_time
from headgate.common.errors import SettingsError
from headgate.common.recipients import wait_for_recipients
from headgate.common.sealing import PUBLIC_KEY_FILE, load_or_create_key_pair
from headgate.common.service.settings import load_settings
from headgate.watcher.__main__ import SUMMARY, main
from headgate.watcher.settings import WatcherSettings


def load(*flags: str) -> WatcherSettings:
    return load_settings(WatcherSettings, flags, program="headgate watcher", summary=SUMMARY)


def encoded(key: PrivateKey) -> str:
    return base64.b64encode(bytes(key.public_key)).decode()


def test_folders_and_keys_may_be_repeated() -> None:
    settings = load("--manifests=a", "--manifests=b", "--sealing-public-keys=x", "--sealing-public-keys=y")
    assert settings.manifests == [Path("a"), Path("b")]
    assert settings.sealing_public_keys == ["x", "y"]


@pytest.mark.parametrize("name", ["", "Paris", "a.b", "-a", "a" * 64])
def test_a_cluster_has_a_usable_name(name: str) -> None:
    with pytest.raises(SettingsError, match="cluster"):
        load(f"--cluster={name}")


def test_the_webhook_needs_a_certificate() -> None:
    with pytest.raises(SettingsError, match="admission_certificate_file"):
        load("--admission-port=9443", "--admission-key-file=key.pem")
    settings = load("--admission-port=9443", "--admission-key-file=key.pem", "--admission-certificate-file=chain.pem")
    assert (settings.admission_port, settings.admission_failure_policy) == (9443, "ignore")


def test_a_kept_certificate_needs_names_and_a_configuration() -> None:
    with pytest.raises(SettingsError, match="admission_webhook, whose caBundle is written"):
        load("--admission-port=9443", "--admission-secret=own", "--admission-names=a.b.svc")
    with pytest.raises(SettingsError, match="admission_names, which the certificate is for"):
        load("--admission-port=9443", "--admission-secret=own", "--admission-webhook=headgate")
    kept = ("--admission-secret=own", "--admission-webhook=headgate", "--admission-names=a.b.svc,192.0.2.1,a.b.svc")
    settings = load("--admission-port=9443", *kept)
    assert settings.admission_names == ["a.b.svc", "192.0.2.1"]
    with pytest.raises(SettingsError, match="exclude each other"):
        load("--admission-port=9443", "--admission-key-file=key.pem", *kept)
    with pytest.raises(SettingsError, match="'A_b' must be a DNS name"):
        load("--admission-names=A_b")


def test_the_webhook_is_set_by_environment_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_ADMISSION_FAILURE_POLICY", "fail")
    monkeypatch.setenv("HEADGATE_ADMISSION_MISSING_REFERENCES", "deny")
    settings = load()
    assert (settings.admission_failure_policy, settings.admission_missing_references) == ("fail", "deny")


def test_folders_have_no_webhook() -> None:
    with pytest.raises(SettingsError, match="exclude each other"):
        load("--manifests=a", "--admission-port=1", "--admission-key-file=k", "--admission-certificate-file=c")


@pytest.mark.parametrize("flag", ["--kubeconfig=x", "--context=x", "--namespaces=x", "--ingress-selector=a=b"])
def test_one_watcher_reads_one_source(flag: str) -> None:
    with pytest.raises(SettingsError, match="exclude each other"):
        load("--manifests=a", flag)


@pytest.mark.parametrize("value", ["A B", "Shop", "a.b", "-a", "shop,B"])
def test_namespaces_must_be_names(value: str) -> None:
    with pytest.raises(SettingsError, match=r"namespaces.*is not a namespace's name"):
        load(f"--namespaces={value}")


def test_namespaces_may_be_separated_by_commas() -> None:
    assert load("--namespaces=shop,blog").namespaces == ["shop", "blog"]


def test_cluster_scoped_kinds_are_left_out_with_namespaces_only() -> None:
    assert not load("--namespaces=shop", "--no-watch-cluster-scoped").watch_cluster_scoped
    assert not load("--manifests=a", "--no-watch-cluster-scoped").watch_cluster_scoped
    with pytest.raises(SettingsError, match=r"watch_cluster_scoped is off.*namespaces"):
        load("--no-watch-cluster-scoped")


@pytest.mark.parametrize("value", ["((", "a=b,", "a b", "a in b", "=x", "a=b=c", "a in (b", "-a"])
def test_a_selector_that_no_api_server_takes_is_refused(value: str) -> None:
    with pytest.raises(SettingsError, match=r"ingress_selector.*must be a label selector"):
        load(f"--ingress-selector={value}")


@pytest.mark.parametrize(
    "value",
    [
        *("team=web", "team==web", "team!=web", "team", "!team", "team=", "a=b,c=d", "a = b , c", "size>3"),
        *("example.com/team in (web, shop),!internal", "team notin (a,b)", "a in ()", "a in(b)"),
    ],
)
def test_a_selector_is_what_kubectl_takes(value: str) -> None:
    assert load(f"--ingress-selector={value}").ingress_selector == value


def test_a_mistake_is_one_line_and_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--cluster=No"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("headgate watcher: cluster: 'No': must be a name")
    assert error.count("\n") == 1


def test_an_unusable_data_directory_is_a_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main([f"--manifests={tmp_path}", f"--data-dir={tmp_path}/file"]) == 2
    assert "data_dir" in capsys.readouterr().err


async def test_keys_are_given_as_such_or_in_files(tmp_path: Path) -> None:
    one, other = PrivateKey.generate(), PrivateKey.generate()
    (tmp_path / "other.pub").write_text(encoded(other) + "\n")
    found = await wait_for_recipients([encoded(one), str(tmp_path / "other.pub")], tmp_path)
    assert found == (one.public_key, other.public_key)


@in_virtual_time
async def test_the_key_of_the_data_directory_is_waited_for(tmp_path: Path) -> None:
    waiting = asyncio.create_task(wait_for_recipients([], tmp_path))
    await asyncio.sleep(0.05)
    (tmp_path / PUBLIC_KEY_FILE).write_text("half a k")
    await asyncio.sleep(0.3)
    assert not waiting.done()
    key = load_or_create_key_pair(tmp_path)
    assert await waiting == (key.public_key,)


@pytest.mark.parametrize("text", ["", "A" * 43 + "="])
async def test_a_key_that_is_none_is_a_mistake(text: str, tmp_path: Path) -> None:
    key = text if not text else text[:10] + "!" + text[11:]
    with pytest.raises(SettingsError, match="sealing_public_keys"):
        await wait_for_recipients([key], tmp_path)


def test_tables_that_are_asked_for_admission_are_named_once_each() -> None:
    assert load().admission_tables == ["default"]
    assert load("--admission-tables=default,tenant-a,tenant-a").admission_tables == ["default", "tenant-a"]
    with pytest.raises(SettingsError, match=r"admission_tables.*such as tenant-a"):
        load("--admission-tables=Tenant")
