"""Questions to finished runs about heads and relations."""
