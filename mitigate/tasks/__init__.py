"""Functions that join stages, with plain arguments: the library, and the parts of recipes. They know neither
configuration nor run folders nor terminals."""
