"""Who may come in by the annotations of ingress-nginx: addresses, names and passwords, a service that is asked.

What ingress-nginx answers with 503, such as a Secret that is missing, refuses all requests here too.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

from headgate.common.plugins.authentication.basic_auth import BasicAuthConfig
from headgate.common.plugins.authentication.digest_auth import DigestAuthConfig
from headgate.common.plugins.authentication.forward_auth import ForwardAuthConfig
from headgate.common.plugins.cautions import cautions
from headgate.common.plugins.checking import check_use
from headgate.common.plugins.errors import PluginFault
from headgate.common.plugins.security.ip_restriction import IpRestrictionConfig
from headgate.common.plugins.security.satisfy_any import SatisfyAnyConfig
from headgate.common.resources import ObjectRef
from headgate.common.sealing import ClusterValue
from headgate.common.table import PluginUse
from headgate.translator.annotations.reading import Reading
from headgate.translator.dialects.ingress.nginx.client_tls import CHALLENGES
from headgate.translator.dialects.ingress.nginx.headers import named_headers
from headgate.translator.objects.plugin_uses import MISSING_SECRET
from headgate.translator.sources.certificates import SECRETS, values_of
from headgate.translator.world.graph import Lookups

_FILE_KEY: Final = "auth"
_TIMEOUT_S: Final = 60.0
_ESCAPED_URL: Final = "$pass_access_scheme://$http_host$escaped_request_uri"


class Access(NamedTuple):
    """Who may come in to an Ingress."""

    networks: PluginUse | None = None
    authentications: tuple[PluginUse, ...] = ()
    is_any_enough: bool = False
    exempt: tuple[str, ...] = ()
    """Paths of Ingresses that begin so need no authentication."""

    def uses(self, path: str, change: Callable[[PluginUse], PluginUse]) -> tuple[PluginUse, ...]:
        """Return the plugins that let requests in to a path of the Ingress; `change` is for those that authenticate."""
        needed = () if path.startswith(self.exempt) else tuple(map(change, self.authentications))
        uses = needed if self.networks is None else (self.networks, *needed)
        return (_any_of(uses),) if len(uses) > 1 and self.is_any_enough else uses


NO_ACCESS: Final = Access()


def read_access(ref: ObjectRef, reading: Reading, lookups: Lookups) -> Access:
    """Return what lets requests in; what is wrong goes to the reading."""
    login, asking = _login(ref, reading, lookups), _asking(ref, reading, lookups)
    if login is not None and asking is not None:
        login, asking = _hidden_last(login, asking)
    return Access(
        networks=_networks(reading),
        authentications=tuple(use for use in (login, asking) if use is not None),
        is_any_enough=reading.group("satisfy").get("rule") == "any",
        exempt=reading.group("no_auth").get("paths", (CHALLENGES,)),
    )


def _hidden_last(login: PluginUse, asking: PluginUse) -> tuple[PluginUse, PluginUse]:
    """Have the service see name and password too, and the upstream only what the service says in their place."""
    named = [*asking.config.get("upstream_headers", []), "Authorization"]  # type: ignore[misc] # a list of names
    return (
        login.model_copy(update={"config": {**login.config, "hide_credentials": False}}),
        asking.model_copy(update={"config": {**asking.config, "upstream_headers": named}}),
    )


def _any_of(uses: tuple[PluginUse, ...]) -> PluginUse:
    config = {use.name: use.config for use in uses}  # without the secrets it is none that a model takes
    secrets = {f"{use.name}.{place}": value for use in uses for place, value in use.secrets.items()}
    return PluginUse(name=SatisfyAnyConfig.plugin, config=config, secrets=secrets)


def _networks(reading: Reading) -> PluginUse | None:
    networks = reading.group("networks")
    allowed, denied = networks.get("allowed", ()), networks.get("denied", ())
    if not allowed and not denied:  # nginx forgets the list of all locations where one has a list of its own
        denied = reading.group("block").get("networks", ())
    if not allowed and not denied:
        return None
    fields: dict[str, Any] = {"whitelist": allowed, "blacklist": denied}
    return PluginUse.of(IpRestrictionConfig(**{name: value for name, value in fields.items() if value}))


# Names and passwords


def _login(ref: ObjectRef, reading: Reading, lookups: Lookups) -> PluginUse | None:
    written = reading.group("login")
    if "type" not in written or lookups.is_assumed:
        return None
    secrets = _secret_values(ref, written.get("secret", ""), reading, lookups)
    if secrets is None:
        return None
    is_basic = written["type"] == "basic"
    config: dict[str, Any] = {"realm": written.get("realm", ""), "hide_credentials": True, "skip_invalid": True}
    if written.get("form") == "auth-map":
        names = sorted(secrets)
        config["users"] = [{"username": name} for name in names]
        field = "hash" if is_basic else "digest"
        secrets = {f"users.{place}.{field}": secrets[name] for place, name in enumerate(names)}
    elif _FILE_KEY in secrets:
        secrets = {"htpasswd" if is_basic else "htdigest": secrets[_FILE_KEY]}
    else:
        reading.close("auth-secret", f"Secret {ref.namespace}/{written['secret']} has no key {_FILE_KEY}")
        return None
    if not secrets:
        reading.close("auth-secret", f"Secret {ref.namespace}/{written['secret']} has no users")
        return None
    plugin = BasicAuthConfig.plugin if is_basic else DigestAuthConfig.plugin
    return PluginUse(name=plugin, config=config, secrets=secrets)


def _secret_values(ref: ObjectRef, named: str, reading: Reading, lookups: Lookups) -> dict[str, ClusterValue] | None:
    """Return the values of the Secret; None where it cannot be used, which is noted."""
    namespace, slash, name = named.rpartition("/")
    if not named:
        reading.close("auth-secret" if reading.has("auth-secret") else "auth-type", "must be together with auth-secret")
        return None
    namespace = namespace if slash else ref.namespace
    if namespace != ref.namespace and not reading.group("security").get("crosses_namespaces", False):
        reading.close("auth-secret", f"must be a Secret of namespace {ref.namespace}")
        return None
    secret = lookups.get(SECRETS, namespace, name)
    if secret is None or secret.held is None:
        reading.close("auth-secret", f"Secret {namespace}/{name} {MISSING_SECRET}")
        return None
    return values_of(secret.held, lookups.cluster)


# A service that is asked


def _asking(ref: ObjectRef, reading: Reading, lookups: Lookups) -> PluginUse | None:
    """Return the plugin that asks the Ingress' own service, or that of all Ingresses."""
    written, field = reading.group("asking"), "auth-url"
    if not written.get("url"):
        is_global = reading.group("global_auth").get("is_on", True)
        written, field = reading.group("global_asking") if is_global else {}, "enable-global-auth"
    url = written.get("url")
    if not url:
        return None
    if ".." in urlsplit(url).netloc:
        reading.close(field, "must be a URL that begins with http:// or https://, with a host")
        return None
    named = written.get("headers_from", "")
    headers = (
        named_headers(ref, "auth-proxy-set-headers", named, reading, lookups)
        if named and not lookups.is_assumed
        else {}
    )
    config = _forward_auth(reading, written, url, headers)
    use = PluginUse(name=ForwardAuthConfig.plugin, config=config)  # checked below, as the URL is what a user wrote
    try:
        check_use(use)
    except PluginFault as fault:
        reading.close(field, f"must be a URL that begins with http:// or https://; {fault.fault}")
        return None
    for one in cautions(use):
        reading.caution(field, one.message)
    return use


def _forward_auth(reading: Reading, written: dict[str, Any], url: str, own: dict[str, str]) -> dict[str, Any]:
    headers = {
        "X-Request-ID": "$request_id",
        "X-Original-URL": "$scheme://$http_host$request_uri",
        "X-Original-Method": "$request_method",
        "X-Sent-From": "nginx-ingress-controller",
        "X-Real-IP": "$remote_addr",
        "X-Forwarded-For": "$remote_addr",
        "X-Auth-Request-Redirect": written.get("redirect") or "$request_uri",
    }
    if "method" in written:
        headers |= {"X-Original-URI": "$request_uri", "X-Scheme": "$pass_access_scheme"}
    replaced = {name.lower() for name in own}
    headers = {name: value for name, value in headers.items() if name.lower() not in replaced} | own
    timeout_s = reading.group("timeouts").get("read_s") or _TIMEOUT_S
    config: dict[str, Any] = {
        "uri": url,
        "ssl_verify": False,
        "request_method": written.get("method", "GET"),
        "request_body": False,
        "all_headers": True,
        "forwarded_headers": False,
        "extra_headers": headers,
        "upstream_headers": list(written.get("headers", ())),
        "response_cookies": True,
        "always_set_cookie": written.get("always_cookie", False),
        "strict_statuses": True,
        "status_on_error": 500,
        "timeout": max(1, min(int(timeout_s * 1000), 600_000)),
    }
    if signin := written.get("signin"):
        config["signin"] = _signin_url(signin, written.get("param") or "rd")
    if key := written.get("cache_key"):
        durations = written.get("durations")
        config["cache"] = {"key": key, **({"durations": durations} if durations else {})}
    return config


def _signin_url(url: str, param: str) -> str:
    """Return where a client signs in, with the URL that it asked for unless the author says another."""
    query = parse_qs(urlsplit(url).query, keep_blank_values=True)
    if any(query.get(param, ())):
        return url
    return f"{url}{'&' if query else '?'}{param}={_ESCAPED_URL}"
