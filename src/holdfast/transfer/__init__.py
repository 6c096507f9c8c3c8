"""What goes out of a memory and what comes in: our own files, and what other programs export."""
