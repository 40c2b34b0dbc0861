"""Generation of tails, and the likelihood that a generator gives to other tails."""
