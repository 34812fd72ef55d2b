"""Plugins: what a route does to requests and answers besides sending them on.

`interface` is what a plugin is written against, `registry` finds plugins by name, `chain` runs those of a route. Every
other module is one built-in plugin, or a part that several of them share.
"""
