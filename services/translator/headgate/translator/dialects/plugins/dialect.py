"""The dialect's value."""

from headgate.common.resources import PLUGIN
from headgate.translator.dialects.plugins.models import PluginSpec
from headgate.translator.dialects.plugins.plugin import STORED, find_plugin, translate_plugin
from headgate.translator.manifests.verdicts import FieldVerdict, Likeness
from headgate.translator.objects.definitions import Definition
from headgate.translator.objects.dialect import Dialect, translated_documents
from headgate.translator.sources.certificates import SECRETS
from headgate.translator.sources.plugin_bundles import PLUGIN_BUNDLES
from headgate.translator.world.attachments import Provider

PLUGINS = Dialect(
    name=PLUGIN.dialect,
    kinds=(
        translated_documents(
            STORED,
            translate_plugin,
            definition=Definition(PluginSpec, (("Plugins", ".spec.plugins[*].name"),)),
            fields=(FieldVerdict(fields=("plugins[]",), likeness=Likeness.SAME),),
        ),
    ),
    reads=(SECRETS, STORED),
    provides=(Provider(PLUGIN_BUNDLES, find_plugin),),
)
