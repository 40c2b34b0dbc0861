"""Runs or audits beside each other."""
