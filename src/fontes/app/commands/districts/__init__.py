"""Commands of the optional parts, which `fontes.app.cli` names and does not import."""
