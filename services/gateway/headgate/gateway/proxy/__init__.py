"""HTTP/1.1 and HTTP/2 between clients and endpoints, from the bytes of a request to the last byte of its answer.

downstream, http2.server   clients' sides; request_reader, parser, framing and grammar read what comes
exchange                   one request and its answer, whatever the versions; its parts know it as `active_request`
admission                  from the path to a route, by `seam`, and what the route asks for, by `hooks`
attempts, pools            from the route to an endpoint and a connection
upstream, http2.upstream   endpoints' sides
books, reports             what is counted, logged and traced
"""
