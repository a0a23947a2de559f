"""`python -m fontes` is `fontes`."""

from .app.cli import main

main()
