"""Measures: from labels to numbers. Pure functions of arrays and tables, which use no model and no file."""

from mitigate.measure.base import Estimate as Estimate
from mitigate.measure.base import measure as measure
