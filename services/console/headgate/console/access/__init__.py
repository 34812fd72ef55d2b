"""Who may come in, what they may do, and what keeps strangers out."""
