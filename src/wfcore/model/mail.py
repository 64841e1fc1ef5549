"""Mails that steps of workflows send."""

from attrs import field, frozen


@frozen
class MailDraft:
    """
    The mail of a step with its templates rendered and secrets masked; nothing is known yet about
    its recipients and files. ML-1.

    `to`: addresses and ids of accounts. `body`: the text as written on the wire; `markdown`: the
    text with inserted values escaped. MD-3. `files`: the keys of steps, each with the name of a
    file, or None for all files of the step.
    """

    to: tuple[str, ...]
    subject: str
    body: str = field(repr=False)
    markdown: str = field(repr=False)
    files: tuple[tuple[str, str | None], ...] = ()
