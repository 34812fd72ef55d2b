"""ConfigMaps, of which only those are kept that settings or objects name."""

from typing import NamedTuple

from headgate.common.resources import CONFIG_MAP, JsonObject
from headgate.translator.manifests.reading import as_object, as_text, creation_time, metadata
from headgate.translator.world.world import StoredKind


class ConfigMap(NamedTuple):
    """What translation needs of a ConfigMap."""

    uid: str
    created_at: str
    data: tuple[tuple[str, str], ...]
    """Keys and texts, sorted; values that are no text are left out."""

    def as_dict(self) -> dict[str, str]:
        """Return the data by key."""
        return dict(self.data)


def read_config_map(manifest: JsonObject) -> ConfigMap:
    """Strip a ConfigMap."""
    data = as_object(manifest.get("data"))
    return ConfigMap(
        uid=as_text(metadata(manifest).get("uid")),
        created_at=creation_time(manifest),
        data=tuple(sorted((key, value) for key, value in data.items() if isinstance(value, str))),
    )


def restore_config_map(config_map: ConfigMap) -> JsonObject:
    """Return a manifest that reads as this form."""
    meta = {"uid": config_map.uid, "creationTimestamp": config_map.created_at or None}
    return {"metadata": meta, "data": config_map.as_dict()}


CONFIG_MAPS: StoredKind[ConfigMap] = StoredKind(CONFIG_MAP, read_config_map, restore=restore_config_map)
