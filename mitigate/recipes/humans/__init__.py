"""People's ratings."""
