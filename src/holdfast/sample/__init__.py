"""A sample history written for Holdfast: the demo, the doctor and the tests use it."""
