"""Find, filter and measure representational harms in commonsense resources and the generators trained on them."""

__version__ = "0.1.0"
