"""TCP and UDP: connections that are passed on as they are, on ports that open and close with the table.

ports            which stream route has a port, and which a server name (pure)
listeners        opens and closes the ports of each new table
acceptor         accepts connections; looks at what they begin with before TLS does
tcp, udp         connections and sessions, each between one client and one endpoint
proxy_protocol   PROXY protocol headers, read and written (pure)
client_hello     the server name that a TLS client asks for (pure)
stats            counters
"""
