"""
The languages in which people are spoken to: one catalogue for notices and pages.

The words in code and templates are English; `wfcore/locale` has their translations (gettext, domain
`wfcore`). `make messages` collects the words and compiles what was translated; Babel is needed by
developers alone, since the compiled catalogue is in the repository.
"""

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gettext import NullTranslations

DOMAIN = "wfcore"
LOCALE = Path(__file__).parent.parent / "locale"
ENGLISH = "en"
LANGUAGES = (ENGLISH, "de")


@lru_cache
def translations(language: str) -> "NullTranslations":
    """The words of that language; English for one that is not here, and for what is missing."""
    from gettext import NullTranslations, translation  # slow to load, and for few

    if language not in LANGUAGES or language == ENGLISH:
        return NullTranslations()
    return translation(DOMAIN, LOCALE, [language], fallback=True)
