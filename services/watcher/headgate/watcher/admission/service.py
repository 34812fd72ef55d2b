"""The webhook as the settings want it."""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial

from nacl.public import PublicKey

from headgate.common.bus.admission import ask
from headgate.common.bus.connection import Bus
from headgate.common.leadership.leadership import Leadership
from headgate.common.resources import ALL_KINDS, Kinds
from headgate.common.sealing import Sealer
from headgate.watcher.admission.admit import Admission, FindUnreported, find_nothing
from headgate.watcher.admission.certificate import CertificateSource, FileCertificate, SecretCertificate
from headgate.watcher.admission.keeper import CertificateKeeper
from headgate.watcher.admission.kept_secret import KeptSecret
from headgate.watcher.admission.question import Scope
from headgate.watcher.admission.rotation import DesiredCertificate
from headgate.watcher.admission.selector import parse_selector
from headgate.watcher.admission.server import AdmissionServer
from headgate.watcher.admission.trusted_bundle import TrustedBundle
from headgate.watcher.admission.verdict import AdmissionPolicy
from headgate.watcher.api.transport import KubernetesTransport
from headgate.watcher.publishing.requesters import Requesters
from headgate.watcher.settings import WatcherSettings


def make_kept_secret(settings: WatcherSettings, transport: KubernetesTransport, namespace: str) -> KeptSecret | None:
    """Return where the watchers keep the webhook's certificate, in their own namespace; None where it is in files."""
    name = settings.admission_secret if settings.admission_port else ""
    return KeptSecret(transport, namespace, name) if name else None


def make_admission_server(
    settings: WatcherSettings,
    bus: Bus,
    recipients: Sequence[PublicKey],
    find_unreported: FindUnreported = find_nothing,
    kept: KeptSecret | None = None,
    requesters: Requesters | None = None,
    kinds: Kinds = ALL_KINDS,
) -> AdmissionServer | None:
    """Return the webhook's server; None where none is wanted."""
    certificate = _certificate(settings, kept)
    if not settings.admission_port or certificate is None:
        return None

    scope = Scope(
        cluster=settings.cluster,
        namespaces=frozenset(settings.namespaces),
        selects=parse_selector(settings.ingress_selector),
        sealer=Sealer(settings.cluster, recipients),
        kinds=kinds,
    )
    return AdmissionServer(
        Admission(
            scope,
            AdmissionPolicy(settings.admission_failure_policy, settings.admission_missing_references),
            {table: partial(ask, bus, table) for table in settings.admission_tables},
            find_unreported,
        ),
        certificate,
        settings.admission_host,
        settings.admission_port,
        settings.admission_deadline_s,
        requesters,
    )


def make_certificate_keeper(
    settings: WatcherSettings, kept: KeptSecret, transport: KubernetesTransport, leadership: Leadership
) -> CertificateKeeper:
    """Return who keeps the webhook's certificate."""
    bundle = TrustedBundle(transport, settings.admission_webhook)
    wanted = DesiredCertificate(tuple(settings.admission_names), timedelta(days=settings.admission_certificate_days))
    return CertificateKeeper(kept, bundle, wanted, leadership)


def _certificate(settings: WatcherSettings, kept: KeptSecret | None) -> CertificateSource | None:
    clients = settings.admission_client_ca_file
    if kept is not None:
        return SecretCertificate(kept, clients)
    if settings.admission_certificate_file and settings.admission_key_file:
        return FileCertificate(settings.admission_certificate_file, settings.admission_key_file, clients)
    return None
