"""Every door translates and calls the engine; none holds logic."""
