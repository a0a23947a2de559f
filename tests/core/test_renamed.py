"""Old public names give the new ones, with a warning."""

from __future__ import annotations

import pytest

import fontes.comparison
import fontes.formats
import fontes.index
import fontes.llm
import fontes.recipes


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        (fontes.core, "Report", "ProgressCallback"),
        (fontes.index, "Reader", "State"),
        (fontes.recipes, "Learning", "RecipeTraining"),
        (fontes.formats, "Documents", "IterableCorpus"),
        (fontes.comparison, "report_of", "compare_runs"),
        (fontes.llm, "Kept", "StoredAnswer"),
    ],
)
def test_an_old_name_is_the_new_one_and_says_so(module, old, new):
    with pytest.warns(DeprecationWarning, match=rf"\.{old} is now {module.__name__}\.{new}"):
        assert getattr(module, old) is getattr(module, new)


def test_the_state_of_an_index_was_its_reader(tmp_path):
    index = fontes.Index.build([("1", "a text")], tmp_path / "x")
    with pytest.warns(DeprecationWarning, match=r"index\.reader is now index\.state"):
        assert index.reader is index.state


def test_an_unknown_name_is_none():
    with pytest.raises(AttributeError, match="has no attribute 'Writer'"):
        fontes.index.Writer  # noqa: B018
