"""Showing what was found: tables, plots, one page, and a model card. It is given finished numbers and frames."""
