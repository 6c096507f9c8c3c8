"""Pure maths over numbers and arrays. Imports nothing of ours; reads no clock, file or generator."""
