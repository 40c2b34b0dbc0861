"""Classifiers of regard, the polarity of a sentence towards its subject (Sheng et al. 2019).

Each has `probabilities(texts) -> (n, 4)`, columns as in LABELS, and knows nothing of where texts come from."""

LABELS = ("negative", "neutral", "positive", "other")
"""The meaning of the columns. "other" is a text of two minds, or one that the other three do not fit."""
