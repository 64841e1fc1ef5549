"""A text that was cut in the middle of a secret shows no more of it than three characters."""

from hypothesis import given
from hypothesis import strategies as st

from wfcore.ports.runtime import StepEnd
from wfcore.rules.masking import MASK, NO_SECRETS, mask_cut, mask_shortened, secrets_of
from wfcore.usecases.executions.step_jobs import mask_lines, without_secrets

SECRET = st.text(st.characters(codec="ascii", min_codepoint=33), min_size=8, max_size=40)
AROUND = st.text(st.sampled_from("\x01\x02\n"), max_size=5)  # shares no character with a secret
SHOWN = 3


def shown_of(secret: str, text: str) -> int:
    """The length of the longest part of *secret* that stands in *text*."""
    parts = (secret[a:b] for a in range(len(secret)) for b in range(a + 1, len(secret) + 1))
    return max((len(part) for part in parts if part in text.replace(MASK, "\0")), default=0)


@given(SECRET, AROUND, st.data())
def test_the_rest_of_a_secret_is_masked_where_a_text_begins(secret, after, data):
    """What is kept of a stream is its last part, which may begin within a secret. SC-1."""
    at = data.draw(st.integers(1, len(secret) - 1))
    text = secret[at:] + after
    assert shown_of(secret, mask_cut(text, secrets_of([secret]), start=True)) <= SHOWN


@given(SECRET, AROUND, st.data())
def test_the_beginning_of_a_secret_is_masked_where_a_text_ends(secret, before, data):
    """No more is kept from some character on, which may lie within a secret. SC-1."""
    at = data.draw(st.integers(1, len(secret) - 1))
    text = before + secret[:at]
    assert shown_of(secret, mask_cut(text, secrets_of([secret]), end=True)) <= SHOWN


def test_an_error_that_was_shortened_shows_no_rest_of_a_secret():
    """Of a long stderr the end is shown, behind an ellipsis."""
    secrets = secrets_of(["SECRET-abcdefgh"])
    said = mask_shortened("exited with status 1: …T-abcdefgh,SECRET-abcdefgh", secrets)
    assert said == f"exited with status 1: …{MASK},{MASK}"
    assert mask_shortened("abcdefgh stays", secrets) == "abcdefgh stays"


def test_only_the_first_ellipsis_stands_for_what_was_left_out():
    """Behind a further one the text goes on, and a secret may still have been cut at the first."""
    secrets = secrets_of(["SECRET-abcdefgh"])
    assert mask_shortened("said: …T-abcdefgh…done", secrets) == f"said: …{MASK}…done"


def test_a_text_without_a_secret_at_its_edges_is_left_alone():
    """Nothing is taken from what stands before and after a cut."""
    secrets = secrets_of(["SECRET-abcdefgh"])
    assert mask_cut("no secret", secrets, start=True, end=True) == "no secret"
    assert mask_cut("", secrets, start=True, end=True) == ""
    assert mask_cut("no secret", NO_SECRETS, start=True, end=True) == "no secret"


def test_output_lines_show_no_part_of_a_secret_where_they_were_cut():
    """Behind a line that came in parts, and where no more is kept, nothing of a secret is left."""
    secrets = secrets_of(["SECRET-abcdefgh"])
    no_more = "\n[no further lines are stored]\n"
    cut = mask_lines(f"-abcdefgh,SECRET-a{no_more}", NO_SECRETS, secrets, continued=True)
    assert cut == f"{MASK},{MASK}{no_more}"
    assert mask_lines("a line\nSECRET", secrets, continued=False) == f"a line\n{MASK}"
    assert mask_lines("abcdefgh\n", secrets, continued=False) == "abcdefgh\n"


def test_the_last_part_of_a_stream_begins_with_no_rest_of_a_secret():
    """What came with an attempt's end may be the last part of much more. EX-28."""
    secrets = secrets_of(["SECRET-abcdefgh"])
    end = without_secrets(StepEnd(lines=(("stdout", "T-abcdefgh" + "." * 20_000),)), secrets)
    assert end.lines == (("stdout", MASK + "." * 20_000),)
