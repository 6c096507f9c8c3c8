"""One strategy per file; `question` reads what is asked and knows them, `collect` gathers what they find."""
