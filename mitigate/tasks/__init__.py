"""What joins several stages, as functions of plain arguments: the library, and what recipes are made of. A task knows
neither configuration nor run folders nor terminals."""
