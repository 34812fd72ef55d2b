"""Entries of tables read as they are encoded, without their models where these say nothing more."""
