"""Policies applied to triples and to generated tails: drop rules, reports, decodings."""
