"""Finished runs asked about heads and relations."""
