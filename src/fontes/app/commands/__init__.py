"""The commands, a module each, whose `commands` is a typer application; `cli` finds them here."""
