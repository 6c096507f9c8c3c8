"""What happens to units over time: vectors, the gate, compaction, supersession, forgetting (C17–C19)."""
