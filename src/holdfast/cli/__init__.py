"""Every interface translates and calls the engine; none holds logic."""
