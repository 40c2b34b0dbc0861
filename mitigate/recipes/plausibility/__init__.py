"""The measure of plausibility, trained."""
