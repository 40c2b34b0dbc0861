"""Run folders: stored results, cached labels, status, and what a result depends on."""
