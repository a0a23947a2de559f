"""Zip files in memory."""

import io
import zipfile


def zipped(*files: tuple[str, bytes]) -> bytes:
    stored = io.BytesIO()
    with zipfile.ZipFile(stored, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return stored.getvalue()
