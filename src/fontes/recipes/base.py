"""`Recipe`: a published system with its parameters, run on a collection into a folder of runs and a report."""

from __future__ import annotations

import re
import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

from ..comparison import Testing
from ..core import FontesError, InputError, MissingExtraError, ParameterError, Qrels, Run, Stage, Topics
from ..core.expression import part, pipeline
from ..core.hints import nearest
from ..core.parameters import Parameter, parameters
from ..core.part import Part
from ..core.registry import Registry
from ..core.stage import AnyStage
from ..core.work import ProgressCallback, work
from ..datasets import named
from ..experiments import Collection
from ..experiments.problems import Problems, System, planned_index
from ..experiments.provenance import hash_of_qrels, hash_of_topics
from ..experiments.runner import Results, RunPlan, reproducible, run
from ..measures import Measure
from ..measures.names import parse_all
from ..neural.encoders.reading import token_limits
from ..train import Side
from .learning import MIN_TOPICS, RecipeTraining, weights_in
from .result import PICTURE, OtherRuns, RecipeResult, drawn_as_svg, shown
from .sides import (
    LEAKS,
    Splits,
    check_leaks,
    drop_leaked,
    merge_duplicates,
    read_sides,
    split_disjoint,
)

STAGE = re.compile(r"\b(Stage|AnyStage|Ranker)\b")  # in the type of a parameter
Systems = dict[str, Stage[Topics, Run]]
Division = tuple[Topics, Qrels | None, RecipeTraining]
"""Topics to search, judgments to measure with, and the training data (empty for a recipe that learns nothing)."""

PUBLISHED: Mapping[str, str] = {"origin": "published"}
"""Metadata of a parameter whose default the publication states: `k1: float = field(default=1.5, metadata=PUBLISHED)`."""
AUTHORS_CODE: Mapping[str, str] = {"origin": "authors' code"}
"""Metadata of a parameter whose default is in the authors' code, or in a library that it calls, but not in the publication."""
PRESET_KEY = "as"


class Need(NamedTuple):
    """Something that a recipe needs.

    Args:
        check: Raises a FontesError if it is missing; a part that it returns is checked, too.
        without: The settings that do without it.
    """

    check: Callable[[], object]
    without: str = ""


@dataclass(frozen=True, repr=False)
class Recipe(Part, ABC):
    """A published system: its parameters, with the published values as defaults, and the runs it produces.

    A recipe is a frozen dataclass whose constructor only stores parameters. `class Feedback(Recipe, name="feedback")` registers
    it under a name. Subclasses define `systems`.
    """

    source: ClassVar[str]
    """The publication."""
    cite: ClassVar[str] = ""
    """The publication in a few words, such as "Dalal et al., FIRE 2021"."""
    task: ClassVar[str] = ""
    """The input: "an event", "a claim or post", "a conversation"."""
    needs: ClassVar[tuple[str, ...]] = ()
    """Extras and models that the published system needs."""
    sample: ClassVar[str] = ""
    """A sample to try the recipe on, such as "harbour/causal"."""
    measures: ClassVar[tuple[str, ...]]
    """The measures of the report."""
    printed: ClassVar[tuple[str, ...]] = ()
    """The measures that are printed, if not all are; the reports have all of them."""
    baseline: ClassVar[str | None] = None
    """The system against which the others are tested; None: all pairs are tested."""
    published: ClassVar[Mapping[str, Mapping[str, float]]] = {}
    """The published values, by system and measure."""
    published_on: ClassVar[str] = ""
    """The topics and documents of the published values; of a recipe without such values, why there are none."""
    presets: ClassVar[Mapping[str, Mapping[str, object]]] = {}
    """Parameters by name of a preset: `-s as=NAME` sets them all, and other settings override them."""

    def __init_subclass__(cls, *, name: str = "", **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        names = [name, *(getattr(base, "name", "") for base in cls.__mro__[1:])]
        cls.name = next(filter(None, names), "")
        if name:
            registry.add(name, cls)

    @abstractmethod
    def systems(self, collection: Collection) -> Systems:
        """Return the systems by name, each from topics to a run, which is saved under that name, folders included.

        It is first called with a collection without documents, to find problems before anything is built.
        """

    def learned_systems(self, collection: Collection, learning: RecipeTraining) -> Systems:
        """Return the systems of a recipe that learns, by name; without topics and folder, they use the starting models."""
        return self.systems(collection)

    def divide(self, topics: Topics, qrels: Qrels | None, train: Qrels | None, dev: Qrels | None) -> Division:
        """Return the topics to search, their judgments, and the training data.

        `qrels` are for measuring and, without `train`, also for training; `dev` is for choosing weights. Raises ParameterError
        for `train` or `dev` if the recipe learns nothing.
        """
        if train is not None or dev is not None:
            raise ParameterError(f"recipe {self.name} learns nothing: leave train and dev out")
        return topics, qrels, RecipeTraining()

    def for_topics(self, topics: Topics) -> Self:
        """Return the recipe adapted to topics that may lack a field; unchanged by default."""
        return self

    def check_sides(self, learning: RecipeTraining) -> None:
        """Raise InputError if there are too few topics to learn from or to choose with."""

    def as_model_input(self, topics: Topics) -> Topics:
        """Return the topics in the form that models read, in which the texts of two sides are compared."""
        return topics

    def requirements(self, topics: Topics | None) -> Iterator[Need]:
        """Yield what the recipe needs with these parameters, and with these topics; by default the parameters that are stages.

        Args:
            topics: The topics to search; None: any.
        """
        for name, parameter in parameters(type(self)).items():
            if isinstance(getattr(self, name), str) and STAGE.search(parameter.kind):
                yield Need(partial(self.stage, name))

    def name_here(self, published: str) -> str:
        """Return the name that a system of `baseline` or `published` has with these parameters."""
        return published

    def measured(self, system: str) -> bool:
        """Whether a system returns the judged documents, so that its run is measured and compared."""
        return True

    def analysis(self, result: RecipeResult) -> list[str]:
        """Return further parts of recipe.md, as Markdown, from the runs and their measures; by default none."""
        return []

    def set(self, settings: Iterable[str]) -> Self:
        """Return a copy with parameters given as text, "NAME=VALUE", such as "k1=1.2" or 'reranker=mono_t5("MODEL")'.

        A value is an expression, as in a pipeline; a string parameter accepts any other text. "as=NAME" applies a preset; other
        settings override it in any order. Raises ParameterError for an unknown name or a value of the wrong type.
        """
        declared = parameters(type(self))
        preset: Mapping[str, object] = {}
        changes: dict[str, object] = {}
        for setting in settings:
            key, sign, text = (word.strip() for word in setting.partition("="))
            if not sign:
                raise ParameterError(f"'{setting}' does not set a parameter; write NAME=VALUE, such as depth=100")
            if key == PRESET_KEY and self.presets:
                if text not in self.presets:
                    raise ParameterError(f"recipe {self.name} has no preset '{text}'; {nearest(text, self.presets)}")
                preset = self.presets[text]
                continue
            if key not in declared:
                raise ParameterError(f"recipe {self.name} has no parameter '{key}'; {nearest(key, declared)}")
            try:
                changes[key] = _parse(declared[key], text)
            except FontesError as error:
                raise ParameterError(f"recipe {self.name}: {error}") from None
        return self.with_(**{**preset, **changes})

    def stage(self, parameter: str, index: object = None) -> AnyStage | None:
        """Return the stage of a parameter that is a stage or an expression for one.

        Without an index the stage can be inspected but not run. Raises ParameterError for an invalid expression.
        """
        value = getattr(self, parameter)
        if not isinstance(value, str):
            stage: AnyStage | None = value
            return stage
        try:
            return pipeline(value, planned_index() if index is None else index)
        except FontesError as error:
            raise type(error)(f"recipe {self.name}: {parameter}: {error}") from None

    def check_models(self) -> None:
        """Check parameters, models and libraries as `run` does, without documents and topics.

        Raises:
            FontesError: One is missing or unusable; all are reported together with settings that avoid them.
        """
        self.check()
        problems = Problems()
        self._collect_problems(problems)
        problems.raise_all(f"recipe {self.name}")

    def build(
        self,
        collection: object,
        folder: str | Path,
        progress: ProgressCallback | None = None,
        learning: RecipeTraining | None = None,
    ) -> Systems:
        """Return the systems over a collection, ready to search or to `compare`.

        Args:
            collection: Path of a corpus, "sample:NAME" or "irds:NAME", an `Index`, a `Dataset`, or any documents.
            folder: Folder where indexes and models are made or reused.
            progress: Called with the progress of long steps.
            learning: Training data, for a recipe that learns.
        """
        self.check_models()
        learning = RecipeTraining() if learning is None else replace(learning, folder=Path(folder))
        with work(progress=progress):
            systems = reproducible(self.learned_systems(Collection(_source(collection), folder), learning))
            for stage in systems.values():
                stage.prepare()
        return systems

    def run(
        self,
        collection: object,
        topics: object,
        qrels: object = None,
        output: str | Path = "results",
        *,
        split: Splits = None,
        train: object = None,
        dev: object = None,
        runs: object = (),
        measures: Iterable[str | Measure] | None = None,
        leaks: str = LEAKS[0],
        allow_empty: bool = False,
        progress: ProgressCallback | None = None,
    ) -> RecipeResult:
        """Run all systems and, given judgments, measure and compare them.

        Resumes after an interruption. Results are written at the end and replace earlier ones; the lock is written last, so a
        folder with a lock is complete.

        Args:
            collection: Path of a corpus, "sample:NAME" or "irds:NAME", an `Index`, a `Dataset`, or any documents.
            topics: Anything `Topics.of` accepts, or the path of a file; a tuple of paths is merged.
            qrels: Anything `Qrels.of` accepts, or the path of one or more files; None: nothing is measured.
            output: Output folder: runs/NAME.run; with judgments report.md, .json and .html; recipe.md, with parameters and with
                published values beside those of the run; recipe.svg, a plot of the baseline or first system, if matplotlib is
                installed; experiment.lock, with versions, hashes and all numbers; and, for later runs, indexes/, models/ and
                cache/.
            split: Split of the collection that `topics` and `qrels` name; several are merged.
            train: Judgments to learn from: anything `Qrels.of` accepts, the path of a file, or a split of the collection that
                `topics` or `qrels` name; their topics are taken from `topics` or from that split. None: a recipe that learns
                divides the judged topics as its paper does, and measures only on the test side; others learn nothing.
            dev: Judgments to choose with, likewise; None: part of the judgments to learn from.
            runs: Other runs, or their paths, in a list or by name: a run with every measured topic is compared with the
                systems; any other run is measured on its judged topics.
            measures: Measures that replace those of the recipe.
            leaks: Treatment of training topics whose text is also in dev or test, and of dev topics whose text is in test:
                "error" lists them, "drop" leaves them out and reports their number. If the recipe divides the topics itself,
                they are dropped.
            allow_empty: Whether to compare systems that found nothing for any topic.
            progress: Called with the progress of each step.

        Raises:
            FontesError: A file, model, library or rewrite is missing or unusable. All are checked before anything is built, and
                reported together with settings that avoid them.
        """
        self.check()
        check_leaks(leaks)
        problems, recipe = Problems(), self
        documents, chosen_measures, others = Collection([], output), tuple[Measure, ...](), OtherRuns()
        division: Division | None = None
        with problems.collected():
            documents = Collection(_source(collection), output)
        with problems.collected():
            chosen_measures = tuple(parse_all(measures or self.measures))
        sources = read_sides(problems, topics, qrels, split, train, dev, any(measure.grouped for measure in chosen_measures))
        with problems.collected():
            if sources is not None:
                searched, judged, learning = division = self.divide(*sources)
                measured = Topics(topic for topic in searched.values() if topic.id in (judged or ()))
                learning = drop_leaked(learning, measured, self.as_model_input, drop=train is None or leaks == "drop")
                self.check_sides(learning)
                side = Side(measured, judged or Qrels())
                division = searched, judged, replace(learning, measured=side, folder=Path(output))
                recipe = self.for_topics(searched)
                rows = [row for source in sources[1:] if source for row in source.rows()]
                judgments = None if sources[1:] == (None, None, None) else Qrels(rows)
                others = OtherRuns.of(runs, measured if judged else searched, judgments, chosen_measures)
        recipe._collect_problems(problems, division)
        problems.raise_all(f"recipe {self.name}")
        assert division is not None
        plan = recipe._plan(documents, division, chosen_measures, others, Testing(allow_empty=allow_empty))
        with work(progress=progress):
            results = run(plan, Path(output))
        return RecipeResult(**vars(results), recipe=recipe, learning=division[2], others=others)

    def _plan(
        self, documents: Collection, division: Division, measures: tuple[Measure, ...], others: OtherRuns, testing: Testing
    ) -> RunPlan:
        """Return the plan of a run: systems, data, measures, and further pages of the output folder."""
        topics, qrels, learning = division
        baseline = self.baseline and self.name_here(self.baseline)
        built: Systems = {}

        def systems(collection: Collection) -> Mapping[str, System]:
            built.update(self.learned_systems(collection, learning))
            return others.beside(built)

        def pages(results: Results) -> dict[str, str]:
            picture = drawn_as_svg(built.get(baseline or "") or next(iter(built.values())))
            stages = {name: stage for name, stage in reproducible(built).items() if isinstance(stage, Stage)}
            reads = {name: token_limits(stage) for name, stage in stages.items()}
            weights = {name: weights_in(stage, results.folder) for name, stage in stages.items()}
            result = RecipeResult(**vars(results), recipe=self, learning=learning, others=others, reads=reads, weights=weights)
            page = result.to_markdown(picture=PICTURE if picture else "")
            return {"recipe.md": page, **({PICTURE: picture} if picture else {})}

        data = {"documents": documents.hash, "topics": hash_of_topics(topics)}
        data |= {} if qrels is None else {"qrels": hash_of_qrels(qrels)}
        return RunPlan(
            systems=systems,
            documents=documents,
            topics=topics,
            qrels=qrels,
            measures=measures,
            title=f"recipe {self.name}",
            measured=self.measured,
            baseline=baseline,
            testing=testing,
            allow_equal=True,
            settings={"recipe": self.name, "parameters": {name: shown(value) for name, value in self.params().items()}},
            data={**{name: {"sha256": digest} for name, digest in data.items()}, **learning.hashes},
            pages=pages,
        )

    def _collect_problems(self, problems: Problems, division: Division | None = None) -> None:
        """Collect the problems of a run on the topics of a division, or of any run if it is None."""
        if division is not None:
            with problems.collected():
                self._check_sources(*division[:2])
        for need in self.requirements(None if division is None else division[0]):
            with problems.collected(need.without):
                if isinstance(needed := need.check(), Part):
                    problems.check_part(needed, partial(self._advice, need.without))
        title = f"recipe {self.name}"
        problems.check_systems(title, partial(self.learned_systems, learning=RecipeTraining()), partial(self._advice, ""))

    def _advice(self, without: str, part: Part, error: FontesError) -> str:
        """Return the settings that do without a part, or that read another model in place of one that is missing."""
        model = str(getattr(part, "name_or_path", ""))
        named = {} if isinstance(error, MissingExtraError) or not model else self.params()
        settings = {name: f"{name}={text.replace(model, 'FOLDER')}" for name, text in named.items() if model in str(text)}
        others = (f"-s {shlex.quote(setting)} reads another model" for setting in settings.values())
        return " or ".join(filter(None, (without, *others)))

    def _check_sources(self, topics: Topics, qrels: Qrels | None) -> None:
        if not topics:
            raise InputError(f"there are no topics to run recipe {self.name} on")
        if qrels is not None and not qrels:
            raise InputError("the qrels contain no judgments")
        if qrels is not None and not set(topics) & set(qrels):
            first, judged = next(iter(topics)), next(iter(qrels))
            raise InputError(f"no topic has judgments: the first topic is '{first}', the first of the qrels '{judged}'")


@dataclass(frozen=True, repr=False)
class LearningRecipe(Recipe):
    """A recipe that learns from given judgments, or from part of the judgments on which it is run.

    Args:
        test: Share of the judged topics that is measured, if the recipe divides them.
        held_out: Share of the training topics used to choose weights and validate, if no dev topics are given; 0: none.
        seed: Random seed.
    """

    chooses: ClassVar[bool] = False
    """Whether the recipe needs topics to choose weights."""

    test: float = 0.2
    held_out: float = 0.1
    seed: int = 0

    @abstractmethod
    def learned_systems(self, collection: Collection, learning: RecipeTraining) -> Systems: ...

    def systems(self, collection: Collection) -> Systems:
        raise ParameterError(f"recipe {self.name} learns: give topics and judgments to learn from")

    def divide(self, topics: Topics, qrels: Qrels | None, train: Qrels | None, dev: Qrels | None) -> Division:
        if train is not None:
            searched, judged, learning = split_disjoint(topics, qrels, train, dev)
        elif dev is not None:
            raise ParameterError(f"recipe {self.name}: dev goes with train; give both, or neither")
        elif qrels is None:
            raise InputError(f"recipe {self.name} learns from judgments: give train, or qrels, to learn from a part of them")
        else:
            train_side, (searched, judged) = self.halves(topics, qrels)
            learning = RecipeTraining(train_side)
        if not learning.train.topics:
            raise InputError("none of the topics has judgments to learn from; do topics and judgments belong together?")
        if dev is None:
            learning = RecipeTraining(*learning.train.split(self.held_out, self.seed))
        return searched, judged, learning

    def check_sides(self, learning: RecipeTraining) -> None:
        count = len(learning.dev.qrels)
        if 0 < count < MIN_TOPICS or (self.chooses and not count):
            advice = "give more topics, more as dev, or a greater held_out"
            raise InputError(f"weights are chosen on {MIN_TOPICS} topics or more, and there are {count}; {advice}")

    def halves(self, topics: Topics, qrels: Qrels) -> tuple[Side, Side]:
        """Return the judged topics to learn from and those to measure with: by default a random share, without duplicates."""
        learned, measured = merge_duplicates(topics, qrels).split(self.test, self.seed)
        if not measured.topics or not learned.topics:
            raise InputError(f"{len(qrels)} judged topics are too few to learn from some and measure with others")
        return learned, measured

    def check(self) -> None:
        if not 0 < self.test < 1:
            raise ParameterError(f"recipe {self.name}: test must be a share between 0 and 1, not {self.test!r}")
        if not 0 <= self.held_out < 1:
            raise ParameterError(f"recipe {self.name}: held_out must be a share from 0 to below 1, not {self.held_out!r}")
        super().check()


registry: Registry[type[Recipe]] = Registry("fontes.recipes", "recipe")
"""All recipes by name."""


def recipe(name: str, **parameters: object) -> Recipe:
    """Return a recipe by name, with parameters that override its defaults; ParameterError for an unknown name or parameter."""
    return registry[name]().with_(**parameters)


def _source(collection: object) -> object:
    return (named(collection) or collection) if isinstance(collection, str) else collection


def _parse(parameter: Parameter, text: str) -> object:
    kinds = [kind.strip() for kind in parameter.kind.split("|")]
    if "str" in kinds and STAGE.search(parameter.kind):
        return None if text == "None" else text  # an expression, read once there is an index
    try:
        value = part(text)
    except FontesError as error:
        if any(kind[:1].isupper() and kind not in ("None", "Path") for kind in kinds) and "str" not in kinds:
            raise ParameterError(f"{parameter.name}: {error}") from None
        value = text
    if isinstance(value, int) and not isinstance(value, bool) and "float" in kinds and "int" not in kinds:
        value = float(value)
    return parameter.checked(value)
