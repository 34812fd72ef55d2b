"""Snippets by their shape, as public repositories have them, each with the number of files in which it was seen.

They were found on 2026-11-23 by a search of stored public repositories for a snippet that begins with one of
`add_header`, `auth_`, `error_page`, `if`, `location`, `more_`, `proxy_`, `rewrite`, `set`, or with anything: the first
ten files of each search. Names and values are made up; what a template fills in is left out.
"""

from typing import NamedTuple


class Shape(NamedTuple):
    """One shape of a snippet."""

    files: int
    text: str
    refused: str = ""
    """The directive because of which it is refused; empty if it is interpreted whole."""
    is_server: bool = False


_REDIRECT = "return 301 https://$host$request_uri;"
LOCATIONS = (
    Shape(13, 'more_set_headers "X-Frame-Options: DENY"; more_set_headers "X-XSS-Protection: 1; mode=block";'),
    Shape(1, "more_clear_headers 'X-Frame-Options'; server_tokens off; location ~ ^/a(.*) { deny all; }", "location"),
    Shape(3, 'if ($request_uri ~* \\.(js|css|gif|jpe?g|png)) { expires 30d; add_header Cache-Control "public"; }'),
    Shape(5, 'proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection "upgrade";'),
    Shape(1, "proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $connection_upgrade;"),
    Shape(3, "rewrite ^(/dashboard)$ $1/ redirect;"),
    Shape(2, "rewrite ^(/project)$ $1/ permanent;"),
    Shape(
        1,
        "rewrite ^/css/(.*)$ /app/css/$1 redirect;  # with its folder\nrewrite ^/images/(.*)$ /app/images/$1 redirect;",
    ),
    Shape(1, "rewrite ^(/auth)$ $1/ redirect; rewrite ^(/metrics)$ $1/ redirect;"),
    Shape(1, "rewrite ^/api_dashboard/(.*) /$1 break;"),
    Shape(1, "rewrite (?i)/api/(.*) /$1 break;"),
    Shape(1, "rewrite ^/old-path/(.*)$ /new-path/$1 permanent;"),
    Shape(1, "rewrite ^/$ /targets last;"),
    Shape(1, "proxy_set_header X-Request-ID $req_id;"),
    Shape(1, "set_real_ip_from 10.0.0.0/8; real_ip_header X-Forwarded-For; real_ip_recursive on;", "set_real_ip_from"),
    Shape(1, 'set $pool "default"; if ($http_x_score < "0.7") { set $pool "bad"; }', "if"),
    Shape(
        2,
        'proxy_set_header l5d-dst-override $service_name.$namespace.svc.cluster.local:80; proxy_set_header Origin "";',
    ),
    Shape(1, 'more_set_headers "X-A: b"; add_header X-Frame-Options "SAMEORIGIN"; add_header X-B "1; mode=block";'),
    Shape(1, "limit_req zone=one burst=200 nodelay; limit_req_status 429;", "limit_req"),
    Shape(2, 'if ($ssl_client_verify != SUCCESS) { return 401; } proxy_set_header X-A "true";', "if"),
    Shape(
        1,
        """
        if ($request_method = 'OPTIONS') {
          add_header 'Access-Control-Allow-Origin' '$http_origin' always;
          add_header 'Access-Control-Max-Age' 86400 always;
          return 204;
        }
        """,
    ),
    Shape(1, f"if ($http_x_forwarded_proto = 'http') {{ {_REDIRECT} }}"),
    Shape(1, f'if ($scheme = "http") {{ {_REDIRECT} }}'),
    Shape(1, 'if ($http_user_agent ~* "(mobile)") { set $proxy_upstream_name "shop-mobile-80"; }', "set"),
    Shape(1, "if ($host = 'www.demo.example' ) { rewrite ^ https://demo.example$request_uri permanent; }"),
    Shape(1, 'if ($http_user_agent ~* "Mobile") { rewrite ^/(.*) /mobile/$1 break; }'),
    Shape(1, "proxy_cookie_flags sessionid SameSite=None Secure;", "proxy_cookie_flags"),
    Shape(1, 'proxy_set_header X-Forwarded-Proto $http_x_forwarded_proto; proxy_set_header X-Forwarded-Prefix "/a";'),
    Shape(1, "proxy_set_header X-Forwarded-Host $host; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;"),
    Shape(1, 'proxy_set_header authorization "";'),
    Shape(1, 'proxy_set_header Authorization "Bearer token";'),
    Shape(
        9, 'add_header X-Frame-Options "DENY" always; add_header Content-Security-Policy "default-src \'self\'" always;'
    ),
    Shape(1, 'add_header X-A nosniff; add_header Set-Cookie "name=value; HttpOnly; Secure; SameSite=Strict";'),
    Shape(
        1,
        """
        set $ips "";
        if ($host = 'sub.domain.example') { set $ips "$http_x_forwarded_for"; }
        proxy_set_header X-Forwarded-For $ips;
        """,
    ),
    Shape(1, 'set $ok 0; if ($http_x_role ~* "a") { if ($request_uri ~* "^/b$") { set $ok 1; } }', "if"),
    Shape(1, 'set $id $http_x_organization_id; if ($id = "") { set $id $arg_org_id; }'),
    Shape(1, "set $deadline ${msec}000 + 30000;", "set"),
    Shape(1, "set $oidc_access_action 'deny401';"),
    Shape(
        1, 'set $region "default"; if ($http_cf_ipcountry = "BR") { set $region "sa"; } proxy_set_header X-R $region;'
    ),
    Shape(
        1, 'set $to ""; if ($request_id ~* "[0-9a-f]$") { set $to "x"; } if ($to != "") { mirror /mirror; }', "mirror"
    ),
    Shape(1, "set $p ''; if ($request_uri ~* \"^/([^/]+)\") { set $p $1; } proxy_set_header X-Forwarded-Prefix /$p;"),
    Shape(1, 'set $ip ""; if ($http_x_forwarded_for ~ "^([^,]+)") { set $ip $1; }'),
    Shape(1, 'set $t ""; if ($host ~* ^([^.]+)\\.shop\\.example$) { set $t $1; } proxy_set_header X-Tenant-ID $t;'),
    Shape(1, "auth_request_set $s $upstream_http_x_error_status; error_page 403 = @autherror;", "error_page"),
    Shape(1, "auth_request /auth; if ($request_method = OPTIONS ) { return 200; }", "auth_request"),
    Shape(7, "auth_request_set $email $upstream_http_x_auth_request_email; proxy_set_header X-Email $email;"),
    Shape(1, "auth_request_set $email $upstream_http_x_auth_request_email; add_header X-Auth-Request-Email $email;"),
    Shape(8, "error_page 401 = @custom_401;", "error_page"),
    Shape(2, 'error_page 403 = "https://sso.example/oauth2/start?rd=$escaped_request_uri";'),
)
SERVERS = (
    Shape(1, "client_header_buffer_size 64k; large_client_header_buffers 4 128k;"),
    Shape(1, "server_name _;", "server_name"),
    Shape(1, 'location = /__code { add_header Set-Cookie "code=$arg_code; Path=/; HttpOnly"; return 302 /; }'),
    Shape(1, 'location /health { access_log off; return 200 "healthy\\n"; }'),
    Shape(1, "return 503;"),
    Shape(1, 'if ( $request_uri ~ "^/api/health" ) { return 403; }'),
    Shape(1, "if ($host ~* ^a\\.apps\\.example$) { return 301 https://a.live.example$request_uri; }"),
    Shape(1, "limit_req_zone $http_x_api_key zone=one:10m rate=100r/s;", "limit_req_zone"),
    Shape(1, "error_page 400 495 496 =401 @e; location @e { return 401; }"),
    Shape(1, "location ~* ^/old-api/(.*) { return 301 https://$host/new-api/$1$is_args$args; }"),
    Shape(1, "add_header X-Frame-Options DENY; add_header Referrer-Policy strict-origin-when-cross-origin;"),
    Shape(1, "location ~ ^/(v1|v2)/ { client_max_body_size 10G; rewrite ^/(.*)$ /group/$1 last; }"),
    Shape(1, "location ~* ^/FOO(.*) { return 308 /foo$1$is_args$args; }"),
    Shape(2, 'location ~* \\.(jpg|css|js)$ { expires 1y; add_header Cache-Control "public, immutable"; }'),
    Shape(1, "location /a { proxy_next_upstream error timeout http_503; }", "proxy_next_upstream"),
    Shape(2, 'location /custom { return 200 "custom response"; }'),
    Shape(1, "location /a { proxy_pass https://publish.example/a; proxy_ssl_server_name on; }", "proxy_pass"),
    Shape(1, "location ~ ^/api/ai/ { proxy_read_timeout 300s; proxy_buffering off; proxy_request_buffering off; }"),
    Shape(1, "location ~ ^/(admin|metrics|debug) { deny all; return 403; }"),
    Shape(1, 'if ($host != "weather.example") { return 444; }'),
    Shape(
        1,
        """
        set $agentflag 0;
        if ($http_user_agent ~* "(Mobile)" ){
          set $agentflag 1;
        }
        if ( $agentflag = 1 ) {
          return 301 https://m.example.com;
        }
        """,
    ),
    Shape(1, 'if ($server_protocol !~* "HTTP/2.0") { return 444; }'),
    Shape(1, 'if ($http_x_test_group = "A") { return 301 http://$host/version-a$request_uri; }'),
    Shape(2, 'if ($http_x_region = "eu") { return 503; }'),
    Shape(1, "if ($http_user_agent ~* (bot|crawler|googlebot)) { return 403; }"),
    Shape(2, "if ($http_x_forwarded_proto != 'https') { return 308 https://$host$request_uri; }"),
    Shape(1, 'if ($http_x_version = "v2") { set $proxy_upstream_name "shop-v2-80"; }', "set"),
    Shape(1, "if ($geoip_country_code = CN) { return 403; }", "if"),
)
SHAPES = (*LOCATIONS, *(shape._replace(is_server=True) for shape in SERVERS))
