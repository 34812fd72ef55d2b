"""`HEADGATE_*` variables that no service knows: misspelt ones would be passed over without a word.

An environment is often shared by several services, so a variable is known if any of them has it.
"""

import difflib
import re
from collections.abc import Iterable
from typing import Final

PREFIX: Final = "HEADGATE_"
SETTING_NAMES: Final = frozenset(
    (
        "access_log",
        "access_log_format",
        "access_log_otlp",
        "access_log_share",
        "acme",
        "acme_ca_file",
        "acme_challenge",
        "acme_directory",
        "acme_dns_command",
        "acme_eab_key_file",
        "acme_eab_key_id",
        "acme_email",
        "acme_key_file",
        "acme_retry_s",
        "admin_host",
        "admin_port",
        "admission_certificate_days",
        "admission_certificate_file",
        "admission_client_ca_file",
        "admission_deadline_s",
        "admission_failure_policy",
        "admission_host",
        "admission_key_file",
        "admission_missing_references",
        "admission_names",
        "admission_port",
        "admission_secret",
        "admission_tables",
        "admission_webhook",
        "allowed_destinations",
        "body_timeout_s",
        "class_by_name",
        "class_names",
        "cluster",
        "clusters",
        "config",
        "connect_timeout_s",
        "console_host",
        "console_oidc_ca_file",
        "console_oidc_client_id",
        "console_oidc_client_secret",
        "console_oidc_groups_claim",
        "console_oidc_issuer",
        "console_oidc_name_claim",
        "console_oidc_operator_groups",
        "console_oidc_scopes",
        "console_oidc_viewer_groups",
        "console_open",
        "console_people_file",
        "console_port",
        "console_url",
        "consumer_scope",
        "context",
        "controller_names",
        "data_dir",
        "debounce_ms",
        "default_certificate",
        "default_certificate_file",
        "default_certificate_key_file",
        "denied_destinations",
        "detailed_errors",
        "drain_delay_s",
        "entrypoints",
        "forget_clusters",
        "gateway_addresses",
        "gateway_infrastructure",
        "gateway_url",
        "global_rule_namespaces",
        "grace_s",
        "header_timeout_s",
        "host_sharing",
        "hooks_file",
        "http3",
        "http3_max_age_s",
        "http_host",
        "http_port",
        "https",
        "https_port",
        "idle_timeout_s",
        "ignored_plugins",
        "ingress_selector",
        "instance",
        "keep_days",
        "keep_revisions",
        "kubeconfig",
        "leader_election",
        "lease_duration_s",
        "lease_name",
        "lease_namespace",
        "lease_renew_deadline_s",
        "lease_retry_s",
        "log_format",
        "log_level",
        "manifests",
        "max_body",
        "max_buffered_bytes",
        "max_connections",
        "max_connections_per_client",
        "max_head",
        "max_metric_series",
        "max_udp_sessions",
        "metric_names",
        "min_body_rate",
        "namespaces",
        "nats_ca_file",
        "nats_certificate_file",
        "nats_inbox",
        "nats_key_file",
        "nats_password",
        "nats_replicas",
        "nats_server_name",
        "nats_url",
        "nats_user",
        "nginx_allow_snippets",
        "nginx_annotations_prefix",
        "nginx_configmap",
        "nginx_default_backend_service",
        "nginx_default_ssl_certificate",
        "nginx_disable_catch_all",
        "nginx_disable_svc_external_name",
        "nginx_enable_ssl_passthrough",
        "nginx_tcp_services",
        "nginx_udp_services",
        "nginx_watch_namespace_selector",
        "otlp_endpoint",
        "path_normalization",
        "plugin_log_dir",
        "plugin_names",
        "plugin_policy_dir",
        "proxy_protocol",
        "proxy_protocol_networks",
        "public_http_port",
        "public_https_port",
        "publish_addresses",
        "read_timeout_s",
        "real_ip_header",
        "recovery_wait_s",
        "rollout_error_points",
        "rollout_latency_factor",
        "rollout_latency_ms",
        "rollout_min_requests",
        "rollout_shares",
        "rollout_window_s",
        "sealing_private_keys",
        "sealing_public_keys",
        "send_timeout_s",
        "shard",
        "sharded",
        "store",
        "store_ca_file",
        "store_certificate_file",
        "store_key_file",
        "store_password",
        "store_sentinel_password",
        "store_sentinel_user",
        "store_user",
        "table",
        "take_status",
        "tls_handshake_timeout_s",
        "tls_ticket_key_file",
        "trace_propagation",
        "trace_share",
        "traefik_allow_cross_namespace",
        "traefik_allow_empty_services",
        "traefik_allow_external_name_services",
        "traefik_cross_provider_namespaces",
        "traefik_default_rule_syntax",
        "traefik_ingress_class",
        "traefik_label_selector",
        "traefik_namespaces",
        "traefik_native_lb_by_default",
        "traefik_strict_prefix_matching",
        "trust_forwarded",
        "trusted_proxies",
        "underscore_names",
        "watch_cluster_scoped",
        "watch_config_maps",
        "watch_pods",
        "watch_referenced_config_maps",
        "watch_secrets",
        "watch_without_class",
        "workers",
        "zone",
    )
)
"""Of all services; each service's own settings are the ones that count, and a test holds this list to them."""
_OTHERS: Final = frozenset(("complete", "console_token", "engine", "gateway_worker"))
"""For the command's completion, and between processes of a gateway."""
_SERVICE_LINK: Final = re.compile(
    r"(.+_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_\d+_(TCP|UDP|SCTP)(_[A-Z]+)?)?)"
)


def unknown_variables(environment: Iterable[str]) -> str:
    """Say which variables are not read, in one line; empty if there are none.

    Args:
        environment: names of variables.
    """
    unknown = sorted(name for name in environment if name.startswith(PREFIX) and not _is_known(name))
    links = [name for name in unknown if _SERVICE_LINK.fullmatch(name.removeprefix(PREFIX))]
    parts = [_shown(name) for name in unknown if name not in links]
    if links:
        more = f" and {len(links) - 1} more" if len(links) > 1 else ""
        parts.append(f"{links[0]}{more}, which Kubernetes makes of Services (enableServiceLinks: false turns them off)")
    return f"unknown variables, which are ignored: {'; '.join(parts)}" if parts else ""


def _is_known(name: str) -> bool:
    setting = name.removeprefix(PREFIX).lower()
    return setting in SETTING_NAMES or setting in _OTHERS


def _shown(name: str) -> str:
    near = difflib.get_close_matches(name.removeprefix(PREFIX).lower(), SETTING_NAMES, 1)
    return f"{name} (the nearest is {PREFIX}{near[0].upper()})" if near else name
