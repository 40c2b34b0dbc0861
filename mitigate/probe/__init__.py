"""What a generator says, and how likely it finds what others said."""
