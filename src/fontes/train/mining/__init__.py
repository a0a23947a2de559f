"""Mining: examples with hard negatives, out of runs and judgments or out of the documents themselves."""

from .documents import document_examples
from .mined import Mined
from .miner import Mining
from .negatives import PRESETS, chosen, mine_negatives

__all__ = ["PRESETS", "Mined", "Mining", "chosen", "document_examples", "mine_negatives"]
