"""The folder from which a coding agent learns to use Fontes."""

from __future__ import annotations

from pathlib import Path

from ...core.errors import InputError

FILES = Path(__file__).parent / "skill_files"


def write_skill(folder: Path) -> list[str]:
    """Write the files of the skill into a folder, in place of an earlier version; return their names.

    Raises:
        InputError: A file cannot be written, or the folder has the SKILL.md of another skill.
    """
    skill = folder / "SKILL.md"
    try:
        if skill.exists() and not skill.read_text(encoding="utf-8", errors="replace").startswith("---\nname: fontes\n"):
            raise InputError(
                f"{skill}: this is the skill of something else; name a folder of its own, such as {folder / 'fontes'}"
            )
        folder.mkdir(parents=True, exist_ok=True)
        names = sorted(path.name for path in FILES.glob("*.md"))
        for name in names:
            (folder / name).write_text((FILES / name).read_text(encoding="utf-8"), encoding="utf-8")
    except OSError as error:
        raise InputError(f"{folder}: the skill cannot be written there ({error.strerror or error})") from None
    return names
