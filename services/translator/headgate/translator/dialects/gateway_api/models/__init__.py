"""The specs as models. Defaults are those of the published schemas, which a file on disk may not have got."""
