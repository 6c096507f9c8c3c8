"""Documents that were ingested: core ones, whose rules go into every context, and knowledge to be searched."""
