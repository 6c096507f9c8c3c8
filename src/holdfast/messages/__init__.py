"""What a caller gives: messages and questions are read, checked and redacted. No clock, no file."""
