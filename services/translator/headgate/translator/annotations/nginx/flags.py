"""The command-line flags of ingress-nginx' controller, each with the setting that says the same here."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from headgate.common.resources import JsonObject
from headgate.translator.manifests.reading import as_list, as_object, as_text, metadata
from headgate.translator.manifests.verdicts import Verdict

_BINARY: Final = "nginx-ingress-controller"
_GATEWAY: Final = "gateways"
_TRANSLATOR: Final = "translator"
_WATCHER: Final = "watchers"


class Flag(NamedTuple):
    """A flag of the controller."""

    name: str
    default: str = ""
    setting: str = ""
    """Name of the setting that has the flag's value; empty for none."""
    reader: str = _TRANSLATOR
    """The service that the setting is for."""
    verdict: Verdict = Verdict.HONOURED
    note: str = ""
    """What else is to be said, or why there is no setting."""


def _unneeded(*names: str, why: str) -> tuple[Flag, ...]:
    return tuple(Flag(name, verdict=Verdict.IGNORED, note=why) for name in names)


FLAGS: Final = (
    Flag("configmap", setting="nginx_configmap", note="name it in `HEADGATE_WATCH_CONFIG_MAPS` of the watchers too"),
    Flag("tcp-services-configmap", setting="nginx_tcp_services", note="and in `HEADGATE_WATCH_CONFIG_MAPS`"),
    Flag("udp-services-configmap", setting="nginx_udp_services", note="and in `HEADGATE_WATCH_CONFIG_MAPS`"),
    Flag("controller-class", default="k8s.io/ingress-nginx", setting="controller_names"),
    Flag(
        "ingress-class",
        default="nginx",
        setting="class_names",
        note="for Ingresses whose class has no IngressClass, as in old clusters",
    ),
    Flag("ingress-class-by-name", setting="class_by_name"),
    Flag("watch-ingress-without-class", setting="watch_without_class"),
    Flag("watch-namespace", setting="namespaces"),
    Flag(
        "watch-namespace-selector",
        setting="nginx_watch_namespace_selector",
        verdict=Verdict.APPROXIMATED,
        note="for Ingresses alone; watchers have to read Namespaces",
    ),
    Flag(
        "default-backend-service",
        setting="nginx_default_backend_service",
        note="for hosts that no object has, for paths that no Ingress of a host has, and for `custom-http-errors`",
    ),
    Flag(
        "default-ssl-certificate",
        setting="nginx_default_ssl_certificate",
        note="a gateway with `HEADGATE_DEFAULT_CERTIFICATE` (or `_FILE`) of its own presents that",
    ),
    Flag("disable-catch-all", setting="nginx_disable_catch_all"),
    Flag("disable-svc-external-name", setting="nginx_disable_svc_external_name"),
    Flag("enable-ssl-passthrough", setting="nginx_enable_ssl_passthrough"),
    Flag("publish-status-address", setting="publish_addresses"),
    Flag(
        "publish-service",
        verdict=Verdict.APPROXIMATED,
        note="gateways announce the addresses of their own Service; else name them in `HEADGATE_PUBLISH_ADDRESSES`",
    ),
    Flag("update-status", default="true", setting="take_status", note="once ingress-nginx does not write it any more"),
    Flag("http-port", default="80", setting="http_port", reader=_GATEWAY),
    Flag("https-port", default="443", setting="https_port", reader=_GATEWAY),
    Flag("enable-metrics", default="true", note="metrics are always there, on `HEADGATE_ADMIN_PORT`"),
    Flag("metrics-per-host", default="true", note="metrics always have the host"),
    Flag(
        "metrics-per-undefined-host",
        verdict=Verdict.IGNORED,
        note="requests for unknown hosts are counted together, as any client could make up names",
    ),
    Flag("shutdown-grace-period", default="0", setting="drain_delay_s", reader=_GATEWAY),
    Flag("healthz-port", default="10254", setting="admin_port", reader=_GATEWAY),
    Flag("kubeconfig", setting="kubeconfig", reader=_WATCHER),
    Flag("v", note="say `HEADGATE_LOG_LEVEL=debug` for more than the least"),
    Flag(
        "annotations-prefix",
        default="nginx.ingress.kubernetes.io",
        setting="nginx_annotations_prefix",
        note="and for the watchers",
    ),
    Flag("deep-inspect", default="true", note="hosts, paths and TLS entries are always looked into"),
    Flag(
        "enable-annotation-validation",
        default="true",
        note="values are always validated; what is refused is said in the status",
    ),
    Flag(
        "enable-topology-aware-routing",
        verdict=Verdict.APPROXIMATED,
        note="annotate Services with `headgate.dev/locality: zone`; `HEADGATE_ZONE` says where a gateway is",
    ),
    Flag(
        "enable-ssl-chain-completion",
        verdict=Verdict.IGNORED,
        note="put the whole chain into the Secret",
    ),
    *_unneeded(
        "validating-webhook",
        "validating-webhook-certificate",
        "validating-webhook-key",
        why="the chart's values under `webhook` install the webhook here",
    ),
    *_unneeded(
        "election-id",
        "election-ttl",
        "disable-leader-election",
        why="leases are in NATS or Redis, for any number of translators",
    ),
    *_unneeded(
        "health-check-path",
        "health-check-timeout",
        "healthz-host",
        "status-port",
        "stream-port",
        "default-server-port",
        "ssl-passthrough-proxy-port",
        "internal-logger-address",
        "profiler-address",
        "profiler-port",
        "profiling",
        "monitor-max-batch-size",
        "dynamic-configuration-retries",
        "disable-full-test",
        "disable-sync-events",
        "sync-period",
        "sync-rate-limit",
        "status-update-interval",
        "update-status-on-shutdown",
        "post-shutdown-grace-period",
        "apiserver-host",
        "certificate-authority",
        "report-node-internal-ip-address",
        "report-status-classes",
        "exclude-socket-metrics",
        "time-buckets",
        "length-buckets",
        "size-buckets",
        "bucket-factor",
        "max-buckets",
        "version",
        "logtostderr",
        "stderrthreshold",
        why="nothing here corresponds to it, and nothing is needed in its place",
    ),
    *_unneeded(
        "maxmind-edition-ids",
        "maxmind-license-key",
        "maxmind-mirror",
        "maxmind-retries-count",
        "maxmind-retries-timeout",
        why="there are no tables of places here",
    ),
)
_BY_NAME: Final = {flag.name: flag for flag in FLAGS}


class FoundFlag(NamedTuple):
    """A flag as a Deployment has it."""

    flag: Flag
    value: str
    field: str

    @property
    def verdict(self) -> Verdict:
        """What becomes of it. A flag without a setting is honoured only by its default."""
        flag = self.flag
        is_other = bool(flag.default) and self.value != flag.default and not flag.setting
        return Verdict.IGNORED if flag.verdict is Verdict.HONOURED and is_other else flag.verdict

    @property
    def advice(self) -> str:
        """The setting in the form of an environment variable, for whom it is, and what else there is to say."""
        if not self.flag.setting:
            return self.flag.note
        line = f"HEADGATE_{self.flag.setting.upper()}={self.value} for the {self.flag.reader}"
        return f"{line}; {self.flag.note}" if self.flag.note else line


def find_flags(manifest: JsonObject) -> Iterator[FoundFlag]:
    """Yield the flags in the arguments of a Deployment or DaemonSet of ingress-nginx; nothing for other workloads."""
    namespace = as_text(metadata(manifest).get("namespace")) or "default"
    pod = as_object(as_object(as_object(manifest.get("spec")).get("template")).get("spec"))
    for position, container in enumerate(map(as_object, as_list(pod.get("containers")))):
        written = {part: list(map(as_text, as_list(container.get(part)))) for part in ("command", "args")}
        if not any(_BINARY in word for words in written.values() for word in words):
            continue
        for part, words in written.items():
            at = f"spec.template.spec.containers[{position}].{part}"
            yield from _flags([word.replace("$(POD_NAMESPACE)", namespace) for word in words], at)


def _flags(words: Sequence[str], at: str) -> Iterator[FoundFlag]:
    for position, word in enumerate(words):
        if not word.startswith("-"):
            continue
        name, has_value, value = word.lstrip("-").partition("=")
        following = words[position + 1] if position + 1 < len(words) else ""
        if not has_value:
            value = following if following and not following.startswith("-") else "true"
        flag = _BY_NAME.get(name) or Flag(name, verdict=Verdict.IGNORED, note="this flag is not known here")
        yield FoundFlag(flag, value, f"{at}[{position}]")
