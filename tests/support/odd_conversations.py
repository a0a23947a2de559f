"""Conversations that rewriters must do something sensible with."""

from fontes import Topic, Topics, Turn


def conversation(name: str, *texts: str, answers: bool = False, manual: str = "") -> Topic:
    turns = tuple(Turn(text, manual=manual, answer=f"answer {n}" if answers else "") for n, text in enumerate(texts, 1))
    return Topic(name, texts[-1], turns=turns)


SIXTY = [f"question {number} about the harbour" for number in range(1, 61)]
ODD = Topics(
    [
        conversation("empty", "Where is the lighthouse?", "", answers=True),
        conversation("blank", "Where is the lighthouse?", "   "),
        conversation("after-empty", "", "Where is the lighthouse?"),
        conversation("no-passages", "Where is the lighthouse?", "Who built it?"),
        conversation("sixty", *SIXTY, answers=True),
        conversation("czech", "Kdy byl postaven Karlův most?", "Kdo ho nechal postavit?", answers=True),
        conversation("why", "why?"),
        conversation("why-why", "why?", "why?", "why?"),
        Topic("no-turns", "Where is the lighthouse?"),
    ]
)
