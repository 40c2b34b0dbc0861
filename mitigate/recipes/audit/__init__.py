"""The harms of a resource."""
