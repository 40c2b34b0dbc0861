"""Measure: from labels to numbers. Pure functions of arrays and tables that know no model and no file."""
