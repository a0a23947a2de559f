"""Commands: functions; see `fontes.app.command_line`."""

# Panel of each command, and its summary for an overview that imports no command; a test compares them with the commands.
SUMMARIES = {
    "add": ("Index", "Add documents to an index, or replace some that it has. Running searches are not disturbed."),
    "check": ("Index", "Check every file of an index, and list leftovers of stopped processes."),
    "copy": ("Index", "Copy an index to a directory or an address, and check all sums. Existing files are not copied again."),
    "delete": ("Index", "Delete documents from an index. Running searches are not disturbed."),
    "doctor": ("Index", "Report what is installed, what each extra lacks, and what the machine offers."),
    "encode": (
        "Index",
        "Store documents' vectors with an index, for dense, late or learned sparse retrieval. An interrupted run resumes.",
    ),
    "index": ("Index", "Make an index of a collection."),
    "info": ("Index", "Describe an index; without one, list the bytes in the user's cache and of compiled code."),
    "merge": ("Index", "Merge the segments of an index, and drop deleted documents. Running searches are not disturbed."),
    "ask": ("Search", "Answer a question from the documents of an index; every sentence cites words that stand in a document."),
    "chat": ("Search", "Hold a conversation: each question is searched in the context of the earlier ones."),
    "explain": ("Search", "Explain the score of a document for a query, or how the query is searched."),
    "mcp": ("Search", "Serve indexes to a language model as search tools, by the Model Context Protocol. Read-only."),
    "search": ("Search", "Search an index for one query, or for a file of topics into a run."),
    "serve": ("Search", "Serve indexes over HTTP, with a page to search them. --quiet logs only errors."),
    "stages": ("Search", "List the parts of pipelines, or show the parameters of one."),
    "why": ("Search", "Print a tree of the causes of an event, as documents state them, with sources. English only."),
    "convert": (
        "Runs",
        "Rewrite a file in another format: BEIR's for corpora and topics, TREC's for qrels and runs, CIFF for an index.",
    ),
    "fuse": ("Runs", "Fuse runs into one. With --learn the weights of each topic are learned on other topics."),
    "rerank": ("Runs", "Rerank the documents of a run: with a cross-encoder, a T5, or any pipeline from run to run."),
    "rewrite": ("Runs", "Rewrite the turns of conversations so that each can be searched by itself."),
    "agent": ("Measure", "Logged calls of language models: topics, judgments, reports."),
    "audit": (
        "Measure",
        "Audit a score: what of it is ties, leaks, copies, missing judgments or another tool's rule. The exit code is 0.",
    ),
    "compare": ("Measure", "Compare runs: means side by side, tests, intervals and effect sizes."),
    "eval": ("Measure", "Measure a run against judgments: means over all judged topics."),
    "failures": ("Measure", "List the topics on which a run loses most, with facts that may explain it."),
    "fit": ("Measure", "Choose the best pipeline within a time budget, and measure the choice on held-out topics."),
    "gate": (
        "Measure",
        "Check that a change of a search loses no quality: exit code 0 passes, 1 loses, 2 not enough topics, 3 did not run.",
    ),
    "judge": (
        "Measure",
        "Judge a pool in the browser: documents of several pipelines, shuffled and blind, into a test collection.",
    ),
    "plot": (
        "Measure",
        "Draw TF-IDF, BM25 or idf as curves, the lengths, Zipf's or Heaps' law of an index, measures of runs, or a pipeline.",
    ),
    "snapshots": (
        "Measure",
        "Compare systems over time: Result Delta, relative improvement and effect ratio beside a pivot system.",
    ),
    "split": ("Measure", "Split topics into training and test without duplicates, and report the overlap of the sides."),
    "tune": ("Measure", "Tune a pipeline by nested cross-validation, and measure it on held-out topics."),
    "keyphrases": ("Models", "Print the keyphrases of a text with their scores, best first, by TopicRank."),
    "llm": ("Models", "Stored answers of language models."),
    "mine": (
        "Models",
        "Mine hard negatives: for each relevant document of a topic, documents that rank high and are not relevant.",
    ),
    "models": (
        "Models",
        "List the models on this machine, and those that stages and recipes load by default. Nothing is downloaded.",
    ),
    "train": ("Models", "Train a model from your own data."),
    "bench": (
        "Reproduce",
        "Run the same systems on several collections: one table with means, ranks and tests, and an experiment for each.",
    ),
    "demo": ("Reproduce", "Run the examples of README, and measure four tasks on the sample collection."),
    "experiment": (
        "Reproduce",
        "Run an experiment and write runs, a report and a lock; or check that its results are reproduced.",
    ),
    "new": (
        "Reproduce",
        "Write a project: a folder of data, an experiment, a notebook and a README. They run, on a sample "
        "until you replace it.",
    ),
    "recipe": ("Reproduce", "Published systems: list them, show one, run it on a collection."),
    "skill": ("Reproduce", "Write a skill for coding agents: SKILL.md and the files it refers to."),
    "task": ("Reproduce", "Shared tasks: set up a project, check it, run it, submit."),
}

ERROR_CODES = {"gate": 3}  # exit code of errors and of wrong usage, for commands whose 1 and 2 are answers
