"""Measures: from labels to numbers. Pure functions of arrays and tables, which use no model and no file."""
