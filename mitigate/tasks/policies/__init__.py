"""Policies applied to triples, to a second training and to generated tails: drop rules, reports, decodings, tuning."""
