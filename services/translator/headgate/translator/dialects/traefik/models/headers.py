"""The middleware `headers`: headers of requests and answers, CORS, and headers for browsers."""

from pydantic import Field

from headgate.translator.manifests.models import Model, Text

_CORS = "CORS: "


class Headers(Model):
    """Headers of requests and answers; an empty value removes one."""

    custom_request_headers: dict[str, Text] = Field(default_factory=dict, description="Headers towards the servers.")
    custom_response_headers: dict[str, Text] = Field(default_factory=dict, description="Headers towards clients.")
    access_control_allow_credentials: bool = Field(default=False, description=_CORS + "credentials are allowed.")
    access_control_allow_headers: tuple[str, ...] = Field(default=(), description=_CORS + "headers of requests.")
    access_control_allow_methods: tuple[str, ...] = Field(default=(), description=_CORS + "methods.")
    access_control_allow_origin_list: tuple[str, ...] = Field(default=(), description=_CORS + "origins, perhaps *.")
    access_control_allow_origin_list_regex: tuple[str, ...] = Field(
        default=(), description=_CORS + "origins, by patterns."
    )
    access_control_expose_headers: tuple[str, ...] = Field(default=(), description=_CORS + "headers of answers.")
    access_control_max_age: int = Field(default=0, description=_CORS + "seconds for which a preflight holds.")
    add_vary_header: bool = Field(default=False, description="Say in Vary that answers depend on the Origin.")
    allowed_hosts: tuple[str, ...] = Field(default=(), description="Hosts that may be asked for.")
    hosts_proxy_headers: tuple[str, ...] = Field(default=(), description="Headers that may name the host.")
    ssl_proxy_headers: dict[str, Text] = Field(default_factory=dict, description="Headers that stand for HTTPS.")
    sts_seconds: int = Field(default=0, ge=0, description="Seconds of Strict-Transport-Security; 0: no such header.")
    sts_include_subdomains: bool = Field(default=False, description="It holds for subdomains.")
    sts_preload: bool = Field(default=False, description="Browsers may list it beforehand.")
    force_sts_header: bool = Field(default=False, alias="forceSTSHeader", description="Over plain HTTP too.")
    frame_deny: bool = Field(default=False, description="X-Frame-Options: DENY.")
    custom_frame_options_value: str = Field(default="", description="Value of X-Frame-Options.")
    content_type_nosniff: bool = Field(default=False, description="X-Content-Type-Options: nosniff.")
    browser_xss_filter: bool = Field(default=False, description="X-XSS-Protection: 1; mode=block.")
    custom_browser_xss_value: str = Field(
        default="", alias="customBrowserXSSValue", description="Value of X-XSS-Protection."
    )
    content_security_policy: str = Field(default="", description="Value of Content-Security-Policy.")
    content_security_policy_report_only: str = Field(
        default="", description="Value of Content-Security-Policy-Report-Only."
    )
    public_key: str = Field(default="", description="Value of Public-Key-Pins.")
    referrer_policy: str = Field(default="", description="Value of Referrer-Policy.")
    permissions_policy: str = Field(default="", description="Value of Permissions-Policy.")
    is_development: bool = Field(default=False, description="Leave out what hinders development.")
    feature_policy: str = Field(default="", description="Deprecated: use permissionsPolicy.")
    ssl_redirect: bool = Field(default=False, description="Deprecated: use redirectScheme.")
    ssl_temporary_redirect: bool = Field(default=False, description="Deprecated: use redirectScheme.")
    ssl_host: str = Field(default="", description="Deprecated: use redirectRegex.")
    ssl_force_host: bool = Field(default=False, description="Deprecated: use redirectRegex.")
