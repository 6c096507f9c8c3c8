"""`python -m holdfast`: the command line."""

from holdfast.interfaces.cli import main

main()
