"""Who a request is from."""
