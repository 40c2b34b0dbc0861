"""What a finished run leaves for people: the page, its plots and tables, the generator's card, the record in W&B."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from mitigate.recipes.job import Job, command, provenance, say
from mitigate.recipes.measures import per_target_tables
from mitigate.report import card, gallery, page, tables
from mitigate.report.ledger import summary
from mitigate.store import Result

if TYPE_CHECKING:
    from mitigate.recipes.mitigate import Plan
