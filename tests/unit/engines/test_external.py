from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from pytest_llmperf.engines.external import External, ExternalOptions
from pytest_llmperf.model.request_fields import RequestFields
from pytest_llmperf.model.suite import Arm, Model

ARM = Arm(name="theirs", engine="external", model=Model(id="m"), options={"url": "http://10.0.0.1:8000/v1/"})
FOLDER = Path("folder")


def test_the_address_is_the_base_without_v1() -> None:
    assert External().address(ARM, FOLDER) == "http://10.0.0.1:8000"
    assert ExternalOptions(url="https://host/prefix/").url == "https://host/prefix"


@pytest.mark.parametrize(
    "url",
    [
        "host:8000",
        "ftp://host",
        "http://",
        "http://[::1",
        "http://host:0",
        "http://host:65536",
        "http://host:port",
        "http://host/v1?key=secret",
        "http://host/#secret",
        "http://user:secret@host",
    ],
)
def test_a_url_that_is_no_base_is_refused_without_repeating_a_secret_in_the_advice(url: str) -> None:
    with pytest.raises(ValidationError) as caught:
        ExternalOptions(url=url)
    assert "secret" not in caught.value.errors()[0]["msg"]


def test_the_url_may_hold_a_variable_and_the_name_of_a_key_may_not() -> None:
    assert {"url"} == ExternalOptions.VARIABLE_FIELDS


def test_a_key_is_named_and_never_read(monkeypatch: pytest.MonkeyPatch) -> None:
    arm = replace(ARM, options={**ARM.options, "api_key_env": "THEIR_KEY"})
    monkeypatch.delenv("THEIR_KEY", raising=False)
    assert "THEIR_KEY (api_key_env) is not set" in (External().unavailable(arm) or "")
    monkeypatch.setenv("THEIR_KEY", "sk-123")
    assert External().unavailable(arm) is None
    assert External().api_key_env(arm) == "THEIR_KEY"
    assert "sk-123" not in repr((arm, External().identity(arm)))


def test_fields_are_the_usual_ones_unless_told_otherwise() -> None:
    told = replace(ARM, options={**ARM.options, "request_fields": {"ignore_eos": False, "return_token_ids": True}})
    assert External().request_fields(ARM) == RequestFields()
    assert str(External().request_fields(ARM)) == "stream_options, ignore_eos"
    assert str(External().request_fields(told)) == "stream_options, return_token_ids"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"ignore_eos": "no"}, "valid boolean"),
        ({"ignore_oes": False}, "Extra inputs"),
        ({"stream_options": False, "continuous_usage_stats": True}, "is a part of stream_options"),
    ],
)
def test_fields_that_make_no_sense_are_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ExternalOptions.model_validate({"url": "http://host", "request_fields": fields})
