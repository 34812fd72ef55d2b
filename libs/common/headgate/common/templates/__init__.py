"""Templates of lua-resty-template: the tags, and of the Lua in them the part that reads values and makes text.

No Lua is run. `tokens` cuts a template, `parsing` reads it into `nodes`, which a gateway renders; whatever is not
followed is refused here, where it was written. A general engine in its place would have to be given this language
first, and then be kept from reaching Python and from working for ever: see decision 0025.
"""
