"""Plugins: what a route does to requests and answers besides sending them on.

`interface` is what a plugin is written against, third-party ones too. `kit` has parts that several plugins share,
`redis` the connections to Redis that plugins of a worker share. `built_in` are the plugins that come with the gateway,
by what they do. `runtime` finds plugins by name and runs those of a route; it alone knows the proxy. Each imports only
those named before it.
"""
