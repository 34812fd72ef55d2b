"""HTTP/1.1 and HTTP/2 between clients and endpoints, from the bytes of a request to the last byte of its answer.

http1, http2      clients' and endpoints' sides, as `sides` has them for both
heads             requests and answers in one form
exchange          one request and its answer
seam              what the proxy asks of the route table
hooks             where it calls what a route does to its requests besides
endpoint_pool     the connections to an endpoint; `pools` has all of them
reports           what takes notes of requests; `traffic` and `stats` count them
"""
