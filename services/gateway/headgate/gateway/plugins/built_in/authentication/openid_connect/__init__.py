"""`openid-connect` and its parts."""
