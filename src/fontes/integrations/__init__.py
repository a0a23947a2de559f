"""Sockets for other frameworks: one module each, which needs its package; `import fontes` needs none of them."""

__all__: list[str] = []
