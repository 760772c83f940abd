"""The supply of a case: everything that its plans need from files, read before anything starts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from pytest_llmperf import workload as workloads
from pytest_llmperf.datasets import entries, tokenizer
from pytest_llmperf.datasets.content import read_data
from pytest_llmperf.errors import UnavailableError
from pytest_llmperf.model.case import Case
from pytest_llmperf.model.suite import Workload
from pytest_llmperf.workload import Deal, Material, Vocabulary

_PARSERS = {"custom": entries.prompts, "sharegpt": entries.conversations}

_ORIGINS = {
    "sharegpt": "It is ShareGPT_V3_unfiltered_cleaned_split.json of the data set"
    " anon8231489123/ShareGPT_Vicuna_unfiltered on Hugging Face, 672,837,942 bytes, SHA-256"
    " 35f0e213ce091ed9b9af2a1f0755e9d39f9ccec34ab281cd4ca60d70f6479ba4; nothing is downloaded here.",
}
_OF_THE_SUITE = "It belongs to the suite; ask whoever wrote it."


@dataclass(frozen=True, slots=True)
class Supply:
    """What was read.

    Attributes:
        case: the same, with the SHA-256 of its files.
        material: for its plans.
    """

    case: Case
    material: Material


def supply(case: Case) -> Supply:
    """Read what a case needs, and try whether there is enough of it for a run.

    Raises:
        UnavailableError: a file or a package is not on this machine; says where it comes from, its SHA-256 if the
            suite gives one, and the key with its path.
        DataError: a file is malformed, too short, or another than the suite names.
    """
    found, load, folder = case.workload, case.load, case.suite.file.parent
    material = Material()
    if found.data is not None:
        data, read = read_data(
            found.data,
            folder,
            _PARSERS[found.kind],
            key=f"path of workload {found.name!r}",
            origin=_ORIGINS.get(found.kind, _OF_THE_SUITE),
        )
        found, material = replace(found, data=data), replace(material, entries=read)
    if load.trace is not None:
        data, times = read_data(
            load.trace.data,
            folder,
            entries.arrivals,
            key=f"trace.path of the load of workload {found.name!r}",
            origin=_OF_THE_SUITE,
        )
        load = replace(load, trace=replace(load.trace, data=data))
        material = replace(material, arrivals=times)
    if (rules := found.rules) is not None:
        material = replace(material, tokenizer=tokenizer.read_tokenizer(_model_folder(case, found), rules))
    if found.kind in {"token-ids", "shared-prefix"}:
        material = replace(material, vocabulary=_vocabulary(case, found))
    if found.data is not None or load.trace is not None:
        workloads.plan(found, load, seed=0, model_id="", material=material, place=Deal(seed=0))
    return Supply(replace(case, workload=found, load=load), material)


def _vocabulary(case: Case, wanted: Workload) -> Vocabulary:
    """Of the model's files; of ``vocab`` where it is given, still without what the files say is special."""
    if wanted.vocab is not None and case.arm.model.path is None:
        return Vocabulary(wanted.vocab)
    try:
        found = tokenizer.read_vocabulary(_model_folder(case, wanted))
    except UnavailableError:
        if wanted.vocab is None:
            raise
        return Vocabulary(wanted.vocab)
    return found if wanted.vocab is None else replace(found, size=wanted.vocab)


def _model_folder(case: Case, wanted: Workload) -> Path:
    path = case.arm.model.path
    if path is None or not Path(path).is_dir():
        where = f"no folder {path}" if path else "the suite gives no folder"
        raise UnavailableError(
            f"workload {wanted.name!r} of kind {wanted.kind} needs the model's tokenizer files: {where} (model.path)"
        )
    return Path(path)
