"""Statements of story generators about targets."""
