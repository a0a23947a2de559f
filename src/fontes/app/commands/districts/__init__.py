"""Commands of the optional parts, found by entry points of the group `fontes.commands`."""
