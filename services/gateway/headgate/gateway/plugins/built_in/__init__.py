"""The plugins that come with the gateway, by what they do; `catalogue` lists them."""
