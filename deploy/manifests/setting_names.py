#!/usr/bin/env python3
"""Write into the chart's schema which settings each service has, so that helm refuses a misspelt one.

python -m deploy.manifests.setting_names [--check]
"""

import json
import sys
from typing import Any

from deploy.manifests.render import CHART

from headgate.common.service.settings import ServiceSettings
from headgate.console.settings import ConsoleSettings
from headgate.gateway.settings import GatewaySettings
from headgate.translator.settings import TranslatorSettings
from headgate.watcher.settings import WatcherSettings

SCHEMA = CHART / "values.schema.json"
SERVICES: dict[str, type[ServiceSettings]] = {
    "watcher": WatcherSettings,
    "translator": TranslatorSettings,
    "gateway": GatewaySettings,
    "console": ConsoleSettings,
}


def with_names(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with the names of today."""
    properties = schema["properties"]
    every = {name for settings in SERVICES.values() for name in settings.model_fields}
    properties["settings"]["propertyNames"] = {"enum": sorted(every)}
    for service, settings in SERVICES.items():
        own = properties[service]["properties"]["settings"]
        own["propertyNames"] = {"enum": sorted(settings.model_fields)}
    return schema


def main(arguments: list[str]) -> int:
    """Write the schema, or compare it; return 1 where it differs."""
    before = SCHEMA.read_text()
    after = json.dumps(with_names(json.loads(before)), indent=2) + "\n"
    if arguments == ["--check"]:
        if before != after:
            print(f"{SCHEMA.name}: other settings than the services have: python -m deploy.manifests.setting_names")
        return int(before != after)
    SCHEMA.write_text(after)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
