"""Scorers, which label texts: -1 prejudice, 0 neutral, +1 favouritism, 2 other, each with a strength in [-1, 1]."""
