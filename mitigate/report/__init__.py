"""Reports of finished runs: tables, plots, pages and model cards. The input is finished numbers and frames."""
