"""What a generator generates, and how likely it finds the tails of others."""
