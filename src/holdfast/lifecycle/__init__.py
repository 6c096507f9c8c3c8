"""What happens to units over time: the gate, compaction, supersession, forgetting (C17–C19)."""
