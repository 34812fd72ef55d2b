"""`python3 -m headgate.common.healthcheck`: whether the service of this container is alive, for images without a shell.

Asks the admin site that the same environment names (`HEADGATE_ADMIN_PORT`); a path may be given, `/healthz` by default.
"""

import os
import sys
from urllib.error import URLError
from urllib.request import urlopen


def main(path: str = "/healthz") -> int:
    """Return 0 if the admin site answers with 200, else 1, after one line that says why."""
    url = f"http://127.0.0.1:{os.environ.get('HEADGATE_ADMIN_PORT', '9080')}{path}"
    try:
        with urlopen(url, timeout=2):
            return 0
    except (URLError, TimeoutError) as error:
        print(f"headgate healthcheck: {url}: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
