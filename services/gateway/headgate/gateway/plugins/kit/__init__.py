"""Parts that several plugins share."""
