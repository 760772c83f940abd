"""What a server says of itself, as text by name."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pytest_llmperf.engines.external import External
from pytest_llmperf.engines.resolved import flattened
from pytest_llmperf.model.redaction import HIDDEN
from pytest_llmperf.model.suite import Arm, Model

ARM = Arm(name="a", engine="external", model=Model(id="m"), options={"url": "http://127.0.0.1:9"})


def test_names_of_nested_values_are_dotted_and_secrets_hidden() -> None:
    assert flattened({"a": {"b": 1, "on": True}, "none": None, "api_key": "sk-1", "list": [1, 2]}) == {
        "a.b": "1", "a.on": "true", "none": "none", "api_key": HIDDEN,
    }  # fmt: skip


def test_ranks_that_differ_say_nothing() -> None:
    assert flattened({"internal_states": [{"tp": 8, "rank": 0}, {"tp": 8, "rank": 1}]}) == {"internal_states.tp": "8"}


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=12,
    )
)
def test_any_answer_is_text_by_name(answer: object) -> None:
    assert all(isinstance(key, str) and isinstance(value, str) for key, value in flattened(answer).items())


def test_the_first_page_that_there_is_counts() -> None:
    pages = {"/get_server_info": {"dp_size": 8}, "/props": {"total_slots": 4}}
    assert External().in_effect(ARM, pages.get) == {"dp_size": "8"}
    assert External().in_effect(ARM, {"/props": ["no mapping"]}.get) is None
