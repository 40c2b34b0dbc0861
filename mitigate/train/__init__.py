"""Training: what a network learns from is put in an order, fitted with Lightning, and kept across a kill."""
