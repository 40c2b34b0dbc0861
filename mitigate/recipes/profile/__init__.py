"""Three sides of one group, from finished runs."""
