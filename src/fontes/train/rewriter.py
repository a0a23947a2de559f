"""Training a T5 that rewrites turns of conversations, on manual rewrites such as CANARD's."""

from __future__ import annotations

from pathlib import Path

from ..core.progress import Report, silent
from ..core.values import Topics
from ..neural.models.hub import located
from ..rewrite.canardt5 import KIND
from .rewrite_pairs import RewriterSettings, conversations, hash_of, training_split
from .runner.checkpoint_folder import check_place
from .runner.fit import Fit
from .runner.running import Training, check_training, run

BASE = "google-t5/t5-base"


def train_rewriter(
    topics: object,
    output: str | Path,
    base: str | Path = BASE,
    settings: RewriterSettings | None = None,
    validation: object = None,
    overwrite: bool = False,
    progress: Report = silent,
) -> Training:
    """Trains a T5 on manual rewrites and writes it to the folder `output`, from which `CanardT5(output)` loads it.

    The model reads what `CanardT5.context` gives and learns to write the manual rewrite of the turn, of first turns too.
    All turns of one conversation, `<conversation>_<turn>`, are learned from or held out together.

    The same seed, torch, processor and number of threads give the same model in float32; so does a training that was
    interrupted and is started again, which goes on from its last checkpoint. It runs on a GPU where there is one.

    Args:
        topics: What `Topics.of` takes, or the path of a file. Topics without a manual rewrite of their own turn are left out.
        output: The folder to make; it appears when all is done. Checkpoints are in OUTPUT.training meanwhile.
        base: The start, a T5 or another encoder with a decoder: a folder, or a name on the Hugging Face hub.
        settings: How to train; None: the defaults.
        validation: Topics of other conversations to validate on; None: conversations that are held out.
        overwrite: Whether a trained model that is there is replaced.
        progress: Is called about once a second.

    Raises:
        InputError: The topics have no rewrites, a conversation is on both sides, `output` is there or cannot be written, the
            base is not there or no such model, or the working folder holds something else.
        ParameterError: The loss is no number any more.
        MissingExtraError: A library of the extra `train` is missing.
    """
    settings = settings or RewriterSettings()
    place = Path(output)
    check_place(place, overwrite)
    check_training("training a rewriter")
    learned, validated = training_split(Topics.read(topics), None if validation is None else Topics.read(validation), settings)
    from .rewriter_model import RewriterModel

    folder = located(base, KIND)
    model = RewriterModel(folder, settings)
    fit = Fit(
        kind=KIND,
        base=str(base),
        folder=folder,
        model=model.network,
        trainer="Seq2SeqTrainer",
        loss=None,
        train=model.rows(learned),
        validation=model.rows(validated),
        save=model.save,
        restore=model.restore,
        collator=model.collator,
        counted=model.counted,
        identity={"topics": hash_of(learned), "validation": hash_of(validated)},
        facts={"conversations": len(conversations(learned)), "conversations_validated": len(conversations(validated))},
    )
    return run(fit, settings, place, overwrite, progress)
