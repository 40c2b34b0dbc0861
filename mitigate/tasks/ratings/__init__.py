"""Human ratings: surveys, answers, anchors between batches, and agreement of scorers with them."""
