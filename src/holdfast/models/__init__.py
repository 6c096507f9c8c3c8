"""The two embedding models that ship with Holdfast, each with its licence and a record of where it comes from."""
