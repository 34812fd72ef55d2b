"""TLS with clients: TLSOptions as policies, and the certificates of TLSStores."""
