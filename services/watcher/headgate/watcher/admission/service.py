"""The webhook as the settings want it."""

from collections.abc import Sequence
from functools import partial

from nacl.public import PublicKey

from headgate.common.bus import Bus
from headgate.common.bus_admission import ask
from headgate.watcher.admission.admit import Admission
from headgate.watcher.admission.certificate import ServerCertificate
from headgate.watcher.admission.question import Scope
from headgate.watcher.admission.selector import parse_selector
from headgate.watcher.admission.server import AdmissionServer
from headgate.watcher.admission.verdict import Policy
from headgate.watcher.settings import WatcherSettings


def make_admission_server(
    settings: WatcherSettings, bus: Bus, recipients: Sequence[PublicKey]
) -> AdmissionServer | None:
    """Return the webhook's server; None where none is wanted."""
    if not (settings.admission_port and settings.admission_certificate_file and settings.admission_key_file):
        return None

    scope = Scope(
        cluster=settings.cluster,
        namespaces=frozenset(settings.namespaces),
        selects=parse_selector(settings.ingress_selector),
        recipients=recipients,
    )
    return AdmissionServer(
        Admission(
            scope,
            Policy(settings.admission_failure_policy, settings.admission_missing_references),
            {table: partial(ask, bus, table) for table in settings.admission_tables},
        ),
        ServerCertificate(
            settings.admission_certificate_file, settings.admission_key_file, settings.admission_client_ca_file
        ),
        settings.admission_host,
        settings.admission_port,
        settings.admission_deadline_s,
    )
