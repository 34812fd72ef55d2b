"""Who may come by `User-Agent`, `Referer`, and what is asked for."""

import pytest

from headgate.gateway.plugins.interface.errors import PluginRefused
from unit.gateway.plugins.running import asked, chain, request

BOT, BROWSER = "my-bot/1.0", "Mozilla/5.0"


async def status(name, config, headers=(), target="/") -> int:
    response = await asked(chain((name, config)), request(target, headers))
    return 200 if response is None else response.status


@pytest.mark.parametrize(
    ("config", "agents", "expected"),
    [
        ({"denylist": ["my-bot"]}, [BOT], 403),
        ({"denylist": ["my-bot"]}, [BROWSER], 200),
        ({"denylist": ["^bot"]}, [BOT], 200),
        ({"allowlist": ["my-bot/[0-9.]+"]}, [BOT], 200),
        ({"allowlist": ["my-bot"]}, [BROWSER], 403),
        ({"allowlist": ["my-bot"], "denylist": ["1.0"]}, [BOT], 403),
        ({"denylist": ["my-bot"]}, [BROWSER, BOT], 403),
        ({"denylist": ["my-bot"]}, [], 403),
        ({"denylist": ["my-bot"], "bypass_missing": True}, [], 200),
    ],
)
async def test_clients_are_let_in_by_name(config, agents, expected) -> None:
    assert await status("ua-restriction", config, [("User-Agent", agent) for agent in agents]) == expected


@pytest.mark.parametrize(
    ("config", "referer", "expected"),
    [
        ({"whitelist": ["yy.com"]}, "http://yy.com/a", 200),
        ({"whitelist": ["yy.com"]}, "http://yy.com:8080/a", 200),
        ({"whitelist": ["yy.com"]}, "http://YY.com/a", 200),
        ({"whitelist": ["yy.com"]}, "http://www.yy.com/a", 403),
        ({"whitelist": ["yy.com"]}, "http://yy.com.evil/a", 403),
        ({"whitelist": ["*.yy.com"]}, "https://a.b.yy.com/", 200),
        ({"whitelist": ["*.yy.com"]}, "https://yy.com/", 403),
        ({"blacklist": ["*.yy.com"]}, "https://a.yy.com/", 403),
        ({"blacklist": ["*.yy.com"]}, "https://zz.com/", 200),
        ({"whitelist": ["yy.com"]}, None, 403),
        ({"whitelist": ["yy.com"]}, "www.yy.com", 403),
        ({"whitelist": ["yy.com"], "bypass_missing": True}, None, 200),
        ({"whitelist": ["yy.com"], "bypass_missing": True}, "[::", 200),
        ({"whitelist": ["yy.com"], "bypass_missing": True}, "http://zz.com", 403),
    ],
)
async def test_requests_are_let_in_by_page(config, referer, expected) -> None:
    assert await status("referer-restriction", config, [("Referer", referer)] if referer else []) == expected


@pytest.mark.parametrize(
    ("config", "target", "expected"),
    [
        ({"block_rules": ["root.exe", "root.m+"]}, "/root.exe?a=a", 403),
        ({"block_rules": ["root.exe", "root.m+"]}, "/root.mm", 403),
        ({"block_rules": ["root.exe", "root.m+"]}, "/ROOT.mm", 200),
        ({"block_rules": ["root.exe"], "case_insensitive": True}, "/ROOT.exe", 403),
        ({"block_rules": ["select.+from"]}, "/?q=select%20a%20from%20b", 403),
        ({"block_rules": ["^/a$"], "rejected_code": 404}, "/a", 404),
        ({"block_rules": ["^/a$"]}, "/a?b", 200),
        ({"block_rules": ["^/admin"]}, "/%61dmin", 403),
        ({"block_rules": ["^/admin"]}, "//admin", 403),
        ({"block_rules": ["^/a/b$"]}, "/x/../a%2Fb", 403),
        ({"block_rules": ["%61"]}, "/%61dmin", 403),
    ],
)
async def test_requests_are_refused_by_target(config, target, expected) -> None:
    assert await status("uri-blocker", config, target=target) == expected


@pytest.mark.parametrize(
    ("name", "config", "body"),
    [
        ("ua-restriction", {"denylist": ["x"]}, b'{"message": "Not allowed"}\n'),
        ("ua-restriction", {"denylist": ["x"], "message": "Go"}, b'{"message": "Go"}\n'),
        ("referer-restriction", {"whitelist": ["x"]}, b'{"message": "Your referer host is not allowed"}\n'),
        ("uri-blocker", {"block_rules": ["/"], "rejected_msg": "no"}, b'{"error_msg": "no"}\n'),
        ("ip-restriction", {"whitelist": ["10.0.0.1"]}, b'{"message": "Your IP address is not allowed"}\n'),
    ],
)
async def test_refusal_says_what_it_is_told_to(name, config, body) -> None:
    response = await asked(chain((name, config)), request())
    assert response is not None
    assert response.body == body


@pytest.mark.parametrize(
    ("name", "config", "told"),
    [
        ("ua-restriction", {}, "needs an allowlist or a denylist"),
        ("ua-restriction", {"denylist": ["("]}, r"config\.denylist\.0: .* is no RE2 pattern"),
        ("referer-restriction", {}, "needs a whitelist or a blacklist"),
        ("referer-restriction", {"whitelist": ["http://a"]}, r"config\.whitelist\.0"),
        ("uri-blocker", {}, r"config\.block_rules: is required"),
        ("uri-blocker", {"block_rules": ["a"], "rejected_code": 100}, "but is 100"),
    ],
)
def test_bad_configuration_is_refused(name, config, told) -> None:
    with pytest.raises(PluginRefused, match=told):
        chain((name, config))
