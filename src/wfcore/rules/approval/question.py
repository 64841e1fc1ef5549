"""
The text of an approval: a title for lists, and the whole text for the page of the decision. MD-2.
"""

from wfcore.model.approval import Approval
from wfcore.rules import markdown


def question(approval: Approval) -> str:
    """The message as Markdown; a message that is not Markdown is escaped."""
    shown = approval.question
    return markdown.escaped(approval.message) if shown is None else shown


def title(approval: Approval) -> str:
    """The title of the question; without a message the name of the step."""
    return markdown.title(question(approval)[:_FIRST]) or approval.step_name


_FIRST = 8_000
"""The characters in which the first line is searched, because lists show many titles."""
