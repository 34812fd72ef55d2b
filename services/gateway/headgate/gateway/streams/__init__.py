"""TCP and UDP: connections that are passed on as they are, on ports that open and close with the table.

route            a stream route as connections use it (pure)
ports            which stream route has a port, and which a server name (pure)
listeners        opens and closes the ports of each new table
acceptor         accepts connections; looks at what they begin with before TLS does
tcp, udp         connections and sessions, each between one client and one endpoint
stats            counters
"""
