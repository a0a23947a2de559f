"""The commands of the districts, a module each, which `cli` finds by entry points of the group `fontes.commands`."""
