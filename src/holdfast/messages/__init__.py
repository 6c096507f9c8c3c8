"""What comes in: messages and documents are read, checked, redacted and cut into units. No clock, no file."""
