"""Commands, one module each, with a typer application named `commands`."""
