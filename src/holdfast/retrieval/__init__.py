"""One strategy per file, and the profiles that combine them."""
