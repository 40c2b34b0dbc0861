"""Studies: one file each, which reads from top to bottom: read, compute, measure, then the page."""
