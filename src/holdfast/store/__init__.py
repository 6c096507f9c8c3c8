"""The truth: the only folder that speaks SQL. `contract` is what a back end promises."""
