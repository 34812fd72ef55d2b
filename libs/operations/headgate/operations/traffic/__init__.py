"""What traffic there is, and what there was: what gateway workers say each second, added up and kept for a while."""
