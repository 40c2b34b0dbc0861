"""Finished runs against a baseline: how far harms and quality differ, and how certain that is. And two audits side by
side (audits, audit_figures, audit_findings)."""
