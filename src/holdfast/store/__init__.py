"""The truth: the only folder that speaks SQL and touches files."""
