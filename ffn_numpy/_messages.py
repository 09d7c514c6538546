"""What the checks and puzzles say: every sentence in English, with an id; in another language if one was chosen."""
from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha1
from typing import Any


class Message(str):
    """A text for the learner. Its id says which sentence it is, whatever its numbers and language."""

    id: str = ""

    def __add__(self, more: str) -> Message:
        return _with_id(str(self) + more, self.id)

    def __radd__(self, before: str) -> Message:
        return _with_id(before + str(self), self.id)


_translations: Mapping[str, str] = {}


def use(translations: Mapping[str, str]) -> None:
    """From now on, say these sentences in place of the English ones: English template -> template."""
    global _translations
    _translations = translations


def say(template: str, /, **values: Any) -> Message:
    """The sentence with its {values} filled in, in the language that was chosen."""
    text = _translations.get(template, template)
    return _with_id(text.format(**values) if values else text, message_id(template))


def message_id(template: str) -> str:
    """Six hexadecimal digits for an English template: what a check leaves in its output beside the text."""
    return sha1(template.encode()).hexdigest()[:6]


def _with_id(text, name):
    message = Message(text)
    message.id = name
    return message


class CheckFailed(AssertionError):
    """The answer is not right. Shown without a traceback in Jupyter, and still an error to nbgrader and nbclient.

    Its text ends with an id in brackets, such as [2.1 3f2a9c]: the number of the exercise and which message it is.
    Jupyter keeps it in the notebook and does not show it; `ffn-numpy class` counts it.
    """

    __module__ = "ffn_numpy.check"

    def __init__(self, text: str, number: str = "") -> None:
        super().__init__(text)
        self.text, self.number, self.id = str(text), number, getattr(text, "id", "")

    def titled(self, number: str, title: str) -> CheckFailed:
        """The same failure under its title, as the learner sees it."""
        mark = "○" if isinstance(self, NotAttempted) else "✗"
        return type(self)(_with_id(f"{mark} {title}\n  {self.text}", self.id), number)

    def __str__(self):
        return f"{self.text}\n[{self.number} {self.id}]" if self.number else self.text

    def _render_traceback_(self):
        return self.text.splitlines()


class NotAttempted(CheckFailed):
    """The exercise still holds its `raise NotImplementedError()`."""

    __module__ = "ffn_numpy.check"
