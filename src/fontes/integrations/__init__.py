"""Integrations with other frameworks, a module each. A module needs the package of its framework; `import fontes` does not."""

__all__: list[str] = []
