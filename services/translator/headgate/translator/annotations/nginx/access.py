"""Annotations of ingress-nginx about who may come in: addresses, authentication, client certificates."""

from headgate.translator.annotations.nginx import values
from headgate.translator.annotations.nginx.row import NginxAnnotation, Risk

_AUTH_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE")
_ANY = "optional-unverified"
_NOT_YET = "it is not followed yet"


def _unread(text: str) -> str:
    return text


def _refused(name: str, risk: Risk = Risk.LOW, *, guards: bool = True, example: str = "x") -> NginxAnnotation:
    return NginxAnnotation(
        name=name, read=_unread, value="text", example=example, refused=_NOT_YET, guards=guards, risk=risk
    )


NETWORKS = (
    *(
        NginxAnnotation(
            name=name,
            sets="networks.allowed",
            read=values.networks,
            value="networks, separated by commas",
            does=does,
            example="10.0.0.0/8,192.0.2.7",
            guards=True,
            risk=Risk.MEDIUM,
        )
        for name, does in (
            ("whitelist-source-range", "The older name of `allowlist-source-range`."),
            ("allowlist-source-range", "Only clients of these may come; others get a 403."),
        )
    ),
    NginxAnnotation(
        name="denylist-source-range",
        sets="networks.denied",
        read=values.networks,
        value="networks, separated by commas",
        does="Clients of these get a 403, whatever the list above says.",
        example="198.51.100.0/24",
        guards=True,
        risk=Risk.MEDIUM,
    ),
)
AUTHENTICATION = (
    NginxAnnotation(
        name="auth-type",
        sets="login.type",
        read=values.option({"basic": "basic", "digest": "digest"}),
        value="`basic`, `digest`",
        does="Users have to give name and password: those of `auth-secret`.",
        example="basic",
        guards=True,
        drops=True,
    ),
    NginxAnnotation(
        name="auth-secret",
        sets="login.secret",
        read=values.basic,
        value="name of a Secret in the namespace",
        does="Names and hashed passwords.",
        example="people",
        guards=True,
        risk=Risk.MEDIUM,
    ),
    NginxAnnotation(
        name="auth-secret-type",
        sets="login.form",
        read=values.option({"auth-file": "auth-file", "auth-map": "auth-map"}),
        value="`auth-file`, `auth-map`",
        default="auth-file",
        does="Whether it has a file of `htpasswd` or `htdigest` under `auth`, or a key for each user.",
        example="auth-map",
        guards=True,
        drops=True,
    ),
    NginxAnnotation(
        name="auth-realm",
        sets="login.realm",
        read=values.realm,
        value="text",
        does="What browsers show when they ask for name and password.",
        example="Back office",
        drops=True,
        risk=Risk.MEDIUM,
    ),
    NginxAnnotation(
        name="auth-url",
        sets="asking.url",
        read=values.url_template,
        value="URL, with variables of nginx",
        does="A service is asked about each request: 2xx lets it in, 401 and 403 refuse it, all else is a 500.",
        example="https://auth.example.com/check?for=$host",
        guards=True,
        drops=True,
        approximation="connections to it are kept, and it is asked by its name in `Host` with the port",
        risk=Risk.HIGH,
    ),
    NginxAnnotation(
        name="auth-signin",
        sets="asking.signin",
        read=values.url_template,
        value="URL, with variables of nginx",
        does="Where a 401 redirects to (302), with the request's URL in the parameter `rd`.",
        example="https://auth.example.com/start",
        risk=Risk.HIGH,
    ),
    NginxAnnotation(
        name="auth-signin-redirect-param",
        sets="asking.param",
        read=values.url_text,
        value="name",
        default="rd",
        does="Another name for this parameter.",
        example="back",
        risk=Risk.MEDIUM,
    ),
    NginxAnnotation(
        name="auth-method",
        sets="asking.method",
        read=values.option({name: name for name in _AUTH_METHODS}),
        value="method",
        default="GET",
        does="Method of the question.",
        example="HEAD",
        guards=True,
    ),
    NginxAnnotation(
        name="auth-response-headers",
        sets="asking.headers",
        read=values.header_list,
        value="headers, separated by commas",
        does="Headers of the service's answer that the upstream gets, in the place of the client's.",
        example="X-User,X-Groups",
        guards=True,
        risk=Risk.MEDIUM,
    ),
    NginxAnnotation(
        name="auth-proxy-set-headers",
        sets="asking.headers_from",
        read=values.basic,
        value="name of a ConfigMap in the namespace, perhaps after `namespace/`",
        does="Further headers for the service, by name; values may have variables of nginx.",
        example="default/headers",
        guards=True,
        risk=Risk.MEDIUM,
    ),
    NginxAnnotation(
        name="auth-request-redirect",
        sets="asking.redirect",
        read=values.url_text,
        value="URL",
        default="$request_uri",
        does="The service gets it in the header `X-Auth-Request-Redirect`.",
        example="https://shop.example.com/back",
        guards=True,
        risk=Risk.MEDIUM,
    ),
    NginxAnnotation(
        name="auth-cache-key",
        sets="asking.cache_key",
        read=values.variables,
        value="variables of nginx",
        does="Answers of the service are kept for each host and path, for requests with the same value.",
        example="$http_authorization$cookie_session",
        approximation="each worker of a gateway keeps its own",
        risk=Risk.MEDIUM,
    ),
    NginxAnnotation(
        name="auth-cache-duration",
        sets="asking.durations",
        read=values.cache_durations,
        value="statuses and a time, several separated by commas",
        default="200 202 401 5m",
        does="How long.",
        example="200 202 401 5m, 404 1m",
        guards=True,
        risk=Risk.MEDIUM,
    ),
    *(
        NginxAnnotation(
            name=name, read=_unread, value="number or boolean", example="10", ignored="connections are always kept"
        )
        for name in (
            "auth-keepalive",
            "auth-keepalive-share-vars",
            "auth-keepalive-requests",
            "auth-keepalive-timeout",
        )
    ),
    NginxAnnotation(
        name="auth-always-set-cookie",
        sets="asking.always_cookie",
        read=values.boolean,
        value="boolean",
        default="false",
        does="The client gets cookies of the service also with errors of the upstream.",
        example="true",
        guards=True,
    ),
    NginxAnnotation(
        name="enable-global-auth",
        sets="global_auth.is_on",
        read=values.boolean,
        value="boolean",
        default="true",
        does="Whether the service that the ConfigMap names (`global-auth-url`) is asked where there is no `auth-url`.",
        example="false",
    ),
    NginxAnnotation(
        name="satisfy",
        sets="satisfy.rule",
        read=values.option({"any": "any", "all": "all"}),
        value="`any`, `all`",
        default="all",
        does="Whether a request comes in by an address of the lists above, by name and password, or by the service, or "
        "needs all of them.",
        example="any",
    ),
)
CLIENT_TLS = (
    NginxAnnotation(
        name="auth-tls-secret",
        sets="client_tls.secret",
        read=values.basic,
        value="name of a Secret in the namespace, perhaps after `namespace/`",
        does="Clients of the host have to show a certificate of the authorities under `ca.crt`; `ca.crl` has those "
        "that are revoked.",
        example="default/authorities",
        guards=True,
        approximation="requests over plain HTTP are redirected, or get a 400 where `ssl-redirect` is false; a Secret "
        "that is missing closes the paths of the Ingress, not of the host",
        risk=Risk.MEDIUM,
    ),
    NginxAnnotation(
        name="auth-tls-verify-client",
        sets="client_tls.mode",
        read=values.option({"on": "required", "off": "", "optional": "optional", "optional_no_ca": _ANY}),
        value="`on`, `off`, `optional`, `optional_no_ca`",
        default="on",
        does="Whether they have to, may, or may with one of unknown authorities too. Others get a 400.",
        example="optional",
        risk=Risk.MEDIUM,
    ),
    NginxAnnotation(
        name="auth-tls-verify-depth",
        sets="client_tls.depth",
        read=values.between(1, 16, 1),
        value="number",
        default="1",
        does="Certificates between that of the client and that of the authority, at most.",
        example="2",
    ),
    NginxAnnotation(
        name="auth-tls-match-cn",
        sets="client_tls.subject",
        read=values.common_name,
        value="`CN=` and a pattern",
        does="What the subject of the certificate has to have in it; others get a 403.",
        example="CN=(alice|bob)",
        drops=True,
        guards=True,
        risk=Risk.HIGH,
    ),
    NginxAnnotation(
        name="auth-tls-error-page",
        sets="client_tls.page",
        read=values.page,
        value="URL",
        does="Where a client without a good certificate is sent to (302).",
        example="https://www.example.com/no-certificate",
        approximation="a path or a named location of nginx is ignored",
        risk=Risk.HIGH,
    ),
    NginxAnnotation(
        name="auth-tls-pass-certificate-to-upstream",
        sets="client_tls.passes",
        read=values.boolean,
        value="boolean",
        default="false",
        does="The upstream gets the certificate in `ssl-client-cert`, besides the headers about it.",
        example="true",
        drops=True,
    ),
    NginxAnnotation(
        name="ssl-ciphers",
        sets="tls.ciphers",
        read=values.ciphers,
        value="ciphers in OpenSSL's notation",
        default="the gateway's own",
        does="Ciphers of the host for TLS 1.2.",
        example="ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-AES256-GCM-SHA384",
        drops=True,
    ),
    NginxAnnotation(
        name="ssl-prefer-server-ciphers",
        sets="tls.prefers",
        read=values.boolean,
        value="boolean",
        default="true",
        does="Whether the order of the ciphers counts, and not that of the client.",
        example="true",
    ),
    NginxAnnotation(
        name="ssl-passthrough",
        sets="passthrough.is_on",
        read=values.boolean,
        value="boolean",
        default="false",
        does="TLS connections for the host go to the Service of path `/` as they are, with the setting "
        "`nginx_enable_ssl_passthrough`.",
        example="true",
    ),
)
ERRORS = (
    NginxAnnotation(
        name="default-backend",
        sets="errors.service",
        read=values.service_name,
        value="name of a Service in the namespace",
        does="Its first port gets the requests while the backend has no healthy endpoint, and is asked for the pages "
        "of `custom-http-errors`.",
        example="errors",
    ),
    NginxAnnotation(
        name="custom-http-errors",
        sets="errors.statuses",
        read=values.statuses,
        value="statuses from 400 to 599, separated by commas",
        does="Answers with these are replaced by that of the default backend, which gets the status in `X-Code` and "
        "more in other headers. Without a default backend they become a 404.",
        example="404,503",
        approximation="the body of the request is not sent to the default backend",
        drops=True,
    ),
    NginxAnnotation(
        name="disable-proxy-intercept-errors",
        sets="errors.own_only",
        read=values.boolean,
        value="boolean",
        default="false",
        does="Only errors of the gateway itself are replaced, not those of endpoints.",
        example="true",
    ),
    NginxAnnotation(
        name="proxy-redirect-from",
        sets="addresses.redirect_from",
        read=values.url_text,
        value="`off`, `default`, text, or a pattern after `~`",
        default="off",
        does="What is replaced at the beginning of `Location` and `Refresh`. `off` and `default` replace nothing.",
        example="http://in.example.com/",
        drops=True,
        risk=Risk.MEDIUM,
    ),
    NginxAnnotation(
        name="proxy-redirect-to",
        sets="addresses.redirect_to",
        read=values.url_text,
        value="`off`, or text",
        default="off",
        does="What stands there instead.",
        example="https://shop.example.com/",
        drops=True,
        risk=Risk.MEDIUM,
    ),
    NginxAnnotation(
        name="proxy-cookie-domain",
        sets="addresses.domain",
        read=values.replacement,
        value="`off`, or two domains",
        default="off",
        does="Replaces the first by the second in the domain of cookies.",
        example="in.example.com shop.example.com",
        risk=Risk.MEDIUM,
    ),
    NginxAnnotation(
        name="proxy-cookie-path",
        sets="addresses.path",
        read=values.replacement,
        value="`off`, or two paths",
        default="off",
        does="Replaces the first by the second at the beginning of the path of cookies.",
        example="/ /app/",
        risk=Risk.MEDIUM,
    ),
)
