"""Topics in SGML and XML, as the campaigns publish them: well-formed or not, with or without a root and closing tags.

Known are topics of TREC's tracks (also Microblog, Web, Genomics, Clinical Trials, Precision Medicine, Session), CLEF (also
`<EN-title>` and eHealth), FIRE, NTCIR and INEX. A topic's number and texts are its attributes and the elements directly in it.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..core import InputError, Topic
from ..core.tabular import join_with_or
from .records import Fields, remedy_of

CODE_POINT = re.compile(r"&#([0-9]{8,});?")
TOKEN = re.compile(
    r"""<(?:!--|!\[CDATA\[|[!?](?=[A-Za-z])|(?P<slash>/?)(?:[A-Za-z_][\w.-]*:)?(?P<tag>[A-Za-z_][\w.-]*)"""
    r"""(?P<attributes>(?:\s+[\w.:-]+\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'<>]+))*)\s*(?P<empty>/?)>)"""
)
ATTRIBUTE = re.compile(r"""(?:[\w.-]+:)?([\w.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'<>]+))""")
ENDS = {"<!--": "-->", "<![CDATA[": "]]>", "<?": "?>", "<!": ">"}
PHRASES = "a b big code em font i mark s small span strong sub sup tt u"  # markup inside a word
BLOCKS = "blockquote br center dd div dl dt h1 h2 h3 h4 h5 h6 hr img li ol p pre table td th tr ul"
MARKUP = frozenset(f"{PHRASES} {BLOCKS}".split())

TOPICS = ("top", "topic", "inex_topic", "session")
OTHER_TOPICS = ("query", "question")  # if they have a number
NUMBERS = ("num", "number", "identifier", "id", "qid", "topic_id", "topicid", "topic-id", "q")
TEXTS = ("currentquery", "query", "title", "content", "question", "summary", "description", "desc")
DESCRIPTIONS = ("description", "desc", "querydescription", "question")
NARRATIVES = ("narrative", "narr", "topic-narrative")
CASE = ("disease", "gene", "variant", "demographic", "treatment", "other")  # of TREC Precision Medicine
FIELD = "field"  # of TREC Clinical Trials 2023, with a name
LANGUAGE = re.compile(r"([a-z]{2})-(title|desc|narr)")
LABELS = {
    "num": re.compile(r"\s*Number\s*:", re.IGNORECASE),
    "title": re.compile(r"\s*Topic\s*:", re.IGNORECASE),
    "desc": re.compile(r"\s*Description\s*:", re.IGNORECASE),
    "narr": re.compile(r"\s*Narrative\s*:", re.IGNORECASE),
}


@dataclass
class Element:
    """An element, with its content as a range of the document's pieces of text.

    Args:
        tag: Name as written, without a namespace.
        attributes: Values by name in lower case.
        offset: Offset of the tag in the file.
        first: First piece of its content.
        last: Piece after its content.
        is_closed: Whether it has a closing tag, or needs none.
        children: Elements directly in it.
    """

    tag: str
    attributes: dict[str, str]
    offset: int
    first: int
    last: int
    is_closed: bool
    children: list[Element] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Name in lower case."""
        return self.tag.lower()


class Document:
    """The elements of a text. Known markup of HTML is removed from the text; `x<y` is text.

    An element without a closing tag ends at the next tag.

    Args:
        text: The text.
        name: File name for messages.
    """

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self.source = text
        self.pieces: list[str] = []  # the text before the first tag, between tags, and after the last one
        tags = list(self._tags())
        closing = _closing(tags)
        self.elements: list[Element] = []
        """The outermost elements."""
        open_elements: list[Element] = []
        for number, match in enumerate(tags):
            if match["slash"]:
                if open_elements and open_elements[-1].last == number + 1:
                    open_elements.pop()
                continue
            last = closing.get(number)
            closed = last is not None or bool(match["empty"])
            end = number + 1 if match["empty"] else number + 2 if last is None else last + 1
            element = Element(match["tag"], _attributes(match["attributes"]), match.start(), number + 1, end, closed)
            (open_elements[-1].children if open_elements else self.elements).append(element)
            if last is not None:
                open_elements.append(element)

    def text(self, element: Element) -> str:
        """The text of an element, with single spaces between words."""
        return spaced("".join(self.pieces[element.first : element.last]))

    def line(self, element: Element) -> int:
        """Line of an element's tag."""
        return self.source.count("\n", 0, element.offset) + 1

    def walk(self) -> Iterator[Element]:
        """Yield all elements, in order."""
        stack = self.elements[::-1]
        while stack:
            yield (element := stack.pop())
            stack += reversed(element.children)

    def text_outside(self, element: Element) -> str:
        """The text of an element that is not in its children, with single spaces between words."""
        pieces, start = [], element.first
        for child in element.children:
            pieces += self.pieces[start : child.first]
            start = child.last
        return spaced("".join(pieces + self.pieces[start : element.last]))

    def _tags(self) -> Iterator[re.Match[str]]:
        """Yield the tags that make elements, and fill `pieces`: the text before, between and after them."""
        text, offset, position = self.source, 0, 0  # start of the text that is not in a piece yet; where the search goes on
        missing: set[str] = set()
        piece: list[str] = []
        while match := TOKEN.search(text, position):
            position = match.end()
            tag, opening, plain = match["tag"], match[0], ""
            if tag is None:
                end = -1 if opening in missing else text.find(ENDS[opening], position)
                if end < 0:  # an unclosed comment is text; do not search for its end again
                    missing.add(opening)
                    continue
                plain = text[position:end] if opening == "<![CDATA[" else " "
                position = end + len(ENDS[opening])
            elif tag.lower() not in PHRASES.split():
                plain = " "
            piece += (resolved(text[offset : match.start()]), plain)
            offset = position
            if tag is not None and tag.lower() not in MARKUP:
                self.pieces.append("".join(piece))
                piece.clear()
                yield match
        self.pieces.append("".join((*piece, resolved(text[offset:]))))


def markup_topics(text: str, name: str, fields: Fields) -> Iterator[Topic]:
    """Yield the topics of a file in SGML or XML.

    The query is the first of query, title, content, question, summary, description that has a text; in a topic without
    elements, all text; or what `fields` names. "Number: 051" gives the id 51, as in the qrels.

    Args:
        text: The file.
        name: File name for messages.
        fields: Names of the elements or attributes of id and text that the user chose.

    Raises:
        InputError: The file is cut off, has no topics, or a topic lacks a number or a known text.
    """
    if "<!ENTITY" in text:  # entities can expand a small file to a huge one
        raise InputError(f"{name}: the file declares entities of its own; write what they stand for in their place")
    document = Document(text, name)
    for position, element in enumerate(_topic_elements(document, fields), 1):
        yield _TopicParts(document, element, fields, f"{name}, topic {position}").topic()


def resolved(text: str) -> str:
    """The text with character references resolved; invalid ones, of any length, become U+FFFD."""
    return html.unescape(CODE_POINT.sub(lambda digits: f"&#{digits[1].lstrip('0')[:8] or 0};", text))


def spaced(text: str) -> str:
    """The words separated by single spaces."""
    return " ".join(text.split())


def _topic_elements(document: Document, fields: Fields) -> list[Element]:
    names = {element.name for element in document.walk()}
    kinds: tuple[str, ...] = tuple(name for name in TOPICS if name in names)
    if not kinds:
        numbers = _chosen(fields, "id") or NUMBERS
        parents = {element.name for element in document.walk() if _names(element) & set(numbers)}
        kinds = tuple(name for name in OTHER_TOPICS if name in parents) or (
            tuple(sorted(parents)) if "id" in fields.chosen else ()
        )
    if not kinds:
        tags = ", ".join(f"<{tag}>" for tag in dict.fromkeys(element.tag for element in document.walk())) or "none"
        problem = f"holds no topics, such as <top> or <topic>; the elements are {tags}"
        raise InputError(f"{document.name}: {problem}{_remedy(document)}")
    first = document.elements[0]
    if not first.is_closed and first.name not in kinds and first.name not in (*NUMBERS, *TEXTS):
        raise _cut_off(document, first)
    return _outermost(document, kinds)


def _remedy(document: Document) -> str:
    """Return advice on an unknown file: the options for the first element with several kinds of children, all texts."""
    for element in document.walk():
        if len({child.tag for child in element.children}) > 1 and not any(child.children for child in element.children):
            row = {child.tag: document.text(child) for child in element.children}
            return remedy_of(document.name, {"id": (), "title": (), "text": ()}, [row], "topics")
    return "; --id NAME and --text NAME choose those of the id and of the text"


def _outermost(document: Document, kinds: Sequence[str]) -> list[Element]:
    """Return the outermost elements of these names; unclosed ones, if none is closed, get what follows as children."""
    topics: list[Element] = []
    stack = document.elements[::-1]
    while stack:
        element = stack.pop()
        if element.name in kinds:
            topics.append(element)
        elif topics and not topics[-1].is_closed:
            topics[-1].children.append(element)
        else:
            stack += reversed(element.children)
    unclosed = [element for element in topics if not element.is_closed]
    if unclosed and len(unclosed) < len(topics):
        raise _cut_off(document, unclosed[0])
    return topics


def _cut_off(document: Document, element: Element) -> InputError:
    problem = f"the <{element.tag}> that begins here has no </{element.tag}>; the file is cut off, or broken XML"
    return InputError.at(document.name, document.line(element), problem)


class _TopicParts:
    """The attributes and elements of a topic: by name in lower case, and as written."""

    def __init__(self, document: Document, element: Element, fields: Fields, where: str) -> None:
        self.document, self.element, self.fields, self.where = document, element, fields, where
        self.texts: dict[str, str] = {}
        self.spelled: dict[str, str] = {}
        self.languages: dict[str, set[str]] = {}
        for name, value in element.attributes.items():
            if name != "lang":
                self.texts[name] = self.spelled[name] = value
        for child in element.children:
            text = document.text(child)
            match = LANGUAGE.fullmatch(child.name)
            language, name = (match[1], match[2]) if match else (child.attributes.get("lang", "")[:2].lower(), child.name)
            self.spelled.setdefault(child.tag, text)
            if language:
                self.languages.setdefault(name, set()).add(language)
                self.texts.setdefault(f"{language}-{name}", text)
            self.texts[name] = self.texts.get(name) or text

    def topic(self) -> Topic:
        """Return the topic; InputError if it has no number or no known text."""
        number, query = self.number(), self.query()
        narrative, description = (self._first(names) for names in (NARRATIVES, DESCRIPTIONS))
        return Topic(number, query, narrative, description)

    def number(self) -> str:
        """The id, from the attributes before the elements."""
        names = _chosen(self.fields, "id") or (*(name for name in NUMBERS if name in self.element.attributes), *NUMBERS)
        stored = next((self.texts[name] for name in names if self.texts.get(name)), "")
        number = LABELS["num"].sub("", stored, count=1).strip()
        if not number:
            candidates = _chosen(self.fields, "id") or NUMBERS[:5]
            texts = [tag for tag in self.spelled if tag.lower() in TEXTS and self.spelled[tag]][:1]
            raise self._error(f"no number (an element or attribute {join_with_or(candidates)})", {"id": (), "text": texts})
        return number.lstrip("0") or "0" if number != stored and number.isdecimal() else number

    def query(self) -> str:
        """The text to search for."""
        chosen = _chosen(self.fields, "text")
        present = [name for name in chosen or TEXTS if name in self.texts]
        if chosen and present:
            return "\n".join(self.texts[name] for name in present)
        if present:
            name = next((name for name in present if self.texts[name]), present[0])
            if len(self.languages.get(name, ())) > 1:
                codes = [code.upper() for code in sorted(self.languages[name])]
                problem = f"the {name} is in several languages ({', '.join(codes)})"
                raise InputError(f"{self.where}: {problem}; --text {codes[0]}-{name} chooses one")
            return _without_label(name, self.texts[name])
        text = "" if chosen else self._other_text()
        if not text:
            names = _chosen(self.fields, "id") or NUMBERS
            tag = next((tag for name in names for tag in self.spelled if tag.lower() == name), names[0])
            raise self._error(f"no text (an element {join_with_or(chosen or TEXTS[1:6])})", {"id": [tag]})
        return text

    def _other_text(self) -> str:
        """The text of a topic without a usual element of texts, or ""."""
        document, children = self.document, [child for child in self.element.children if child.name == FIELD]
        if children:
            return spaced(" ".join(f"{child.attributes.get('name', '')} {document.text(child)}" for child in children))
        if CASE[0] in self.texts:
            values = (self.texts.get(name, "") for name in CASE)
            return " ".join(value for value in values if value and value.lower() != "none")
        return document.text_outside(self.element)

    def _first(self, names: Sequence[str]) -> str:
        return next((_without_label(name, self.texts[name]) for name in names if self.texts.get(name)), "")

    def _error(self, problem: str, keys: Mapping[str, Sequence[str]]) -> InputError:
        names = ", ".join(f"'{name}'" for name in self.spelled) or "nothing"
        remedy = remedy_of(self.document.name, {"title": (), "text": (), **keys}, [self.spelled], "topics")
        return InputError(f"{self.where}: {problem}; found {names}{remedy}")


def _without_label(name: str, text: str) -> str:
    label = LABELS.get({"description": "desc", "narrative": "narr"}.get(name, name))
    return label.sub("", text, count=1).strip() if label else text


def _chosen(fields: Fields, part: str) -> tuple[str, ...]:
    return tuple(name.lower() for name in getattr(fields, part)) if part in fields.chosen else ()


def _names(element: Element) -> set[str]:
    return element.attributes.keys() | {child.name for child in element.children}


def _attributes(text: str) -> dict[str, str]:
    return {match[1].lower(): html.unescape(next(filter(None, match.groups()[1:]), "")) for match in ATTRIBUTE.finditer(text)}


def _closing(tags: Sequence[re.Match[str]]) -> dict[int, int]:
    """Return the number of the closing tag for each opening tag that has one."""
    closing: dict[int, int] = {}
    open_tags: list[tuple[str, int]] = []
    counts: Counter[str] = Counter()
    for number, match in enumerate(tags):
        name = match["tag"].lower()
        if not match["slash"]:
            if not match["empty"]:
                open_tags.append((name, number))
                counts[name] += 1
        elif counts[name]:
            popped = ""
            while popped != name:
                popped, opening = open_tags.pop()
                counts[popped] -= 1
            closing[opening] = number
    return closing
