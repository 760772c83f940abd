"""The store: a folder of baseline files, ``<hardware>/<suite>/<case>.yaml``, and published numbers beside them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_llmperf.baseline import published
from pytest_llmperf.baseline.baseline import Baseline
from pytest_llmperf.baseline.document import text_if_any, text_of
from pytest_llmperf.baseline.noise import rounded
from pytest_llmperf.baseline.reader import load, parse
from pytest_llmperf.baseline.reference import split
from pytest_llmperf.baseline.replacement import replace_all
from pytest_llmperf.baseline.writer import render
from pytest_llmperf.checks.comparability import ANY_HARDWARE
from pytest_llmperf.errors import BaselineError, shown
from pytest_llmperf.model.calibration import Calibration
from pytest_llmperf.model.published import Published

_CASE = r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*){1,2}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A file of the store.

    Attributes:
        hardware: slug, by its place; so are ``suite`` and ``case``, "" for a file that lies in no place of a case.
        published: whether its place is that of published numbers.
        baseline: what it holds; None for published numbers, and where it cannot be read.
        numbers: that are published in it.
        error: why it cannot be read, "" where it can.
    """

    path: Path
    hardware: str
    suite: str
    case: str
    published: bool = False
    baseline: Baseline | None = None
    numbers: tuple[Published, ...] = ()
    error: str = ""


class Store:
    """Baselines under one root.

    A case that runs on any hardware has two files: its counts under ``any``, its timings under the machine's slug.
    """

    def __init__(self, root: Path, revision: str = "") -> None:
        self.root = root
        self.revision = revision

    def shown(self, path: Path) -> str:
        """One of its files, in a message."""
        return f"{self._named(path)} at {self.revision}" if self.revision else shown(path)

    def path(self, hardware_slug: str, suite: str, case_id: str) -> Path:
        """Where a baseline is kept; the slashes of a case id become folders.

        Raises:
            BaselineError: a part that is empty or would leave the store, or a name that published numbers have.
        """
        parts = [hardware_slug, *suite.split("/"), *case_id.split("/")]
        if any(part in {"", ".", ".."} or not part.isprintable() for part in parts) or "/" in hardware_slug:
            raise BaselineError(f"{'/'.join(parts)!r}: not a place in the store {self.root}")
        if parts[-1].endswith(published.SUFFIX):
            raise BaselineError(
                f"{case_id!r}: no case can end in {published.SUFFIX!r}, as the files of published numbers do; rename"
                " the workload or the load"
            )
        return self.root.joinpath(*parts[:-1], parts[-1] + ".yaml")

    def published_path(self, hardware_slug: str, suite: str, case_id: str) -> Path:
        """Where the published numbers of a case are kept: beside its baseline.

        Raises:
            BaselineError: see ``path``.
        """
        path = self.path(hardware_slug, suite, case_id)
        return path.with_name(f"{path.name.removesuffix('.yaml')}{published.SUFFIX}.yaml")

    def read(self, hardware_slug: str, suite: str, case_id: str) -> Baseline | None:
        """The baseline, or None when there is none.

        Raises:
            BaselineError: the file cannot be read, holds a mistake, or belongs to another case.
        """
        path = self.path(hardware_slug, suite, case_id)
        text = text_if_any(path)
        if text is None:
            return None
        baseline = parse(text, str(path))
        if baseline.case != case_id:
            raise BaselineError(
                f"{path}: is the baseline of {baseline.case!r}, not of {case_id!r}; was it renamed by hand?"
            )
        return baseline

    def read_case(self, machine: str, suite: str, case_id: str, *, any_hardware: bool) -> list[Baseline]:
        """The baselines that a case has on this machine: its own and, if it runs on any hardware, those counts."""
        slugs = (machine, ANY_HARDWARE) if any_hardware else (machine,)
        found = [self.read(slug, suite, case_id) for slug in slugs]
        return [baseline for baseline in found if baseline is not None]

    def published(self, machine: str, suite: str, case_id: str) -> tuple[Published, ...]:
        """The published numbers to be shown beside what is measured on this machine; those of any hardware last.

        Raises:
            BaselineError: a file cannot be read, holds a mistake, or belongs to another case.
        """
        slugs = dict.fromkeys((machine, ANY_HARDWARE))
        return tuple(number for slug in slugs for number in self._publication(slug, suite, case_id))

    def _publication(self, slug: str, suite: str, case_id: str) -> tuple[Published, ...]:
        path = self.published_path(slug, suite, case_id)
        if not path.exists():
            return ()
        found = published.load(path)
        if found.case != case_id:
            raise BaselineError(
                f"{path}: is published for {found.case!r}, not for {case_id!r}; was it renamed by hand?"
            )
        return found.numbers

    def write(self, path: Path, baseline: Baseline) -> None:
        """Replace the file, or leave it as it was: a reader never sees half of one.

        Raises:
            BaselineError: the folder cannot be written.
        """
        self.write_all({path: baseline})

    def write_all(self, files: Mapping[Path, Baseline]) -> None:
        """Replace these files, or leave them all as they were: no new one takes its place before all are written.

        Raises:
            BaselineError: one of them cannot be written.
        """
        replace_all({path: self.text(path, each) for path, each in files.items()})

    def texts_of(self, machine: str, suite: str, baseline: Baseline, *, any_hardware: bool) -> dict[Path, str]:
        """The files that ``write_case`` would write, with their texts."""
        places = self._places(machine, suite, baseline, any_hardware=any_hardware)
        return {path: self.text(path, part) for path, part in places.items()}

    def calibrated(self, machine: str, suite: str, case_id: str, calibration: Calibration) -> dict[Path, Baseline]:
        """The files of a case on this machine as they are with a calibration: each with that of its own metrics.

        Files of which no metric was calibrated are left out. Writes nothing.

        Raises:
            BaselineError: a file cannot be read.
        """
        found = {}
        for slug in (machine, ANY_HARDWARE):
            old = self.read(slug, suite, case_id)
            noise = None if old is None else calibration.only(old.metrics)
            if old is not None and noise is not None:
                found[self.path(slug, suite, case_id)] = replace(old, calibration=rounded(noise))
        return found

    def text(self, path: Path, baseline: Baseline) -> str:
        """What ``write`` writes."""
        return render(baseline, self._named(path))

    def rename(self, suite: str, old: str, new: str) -> list[Path]:
        """Give a case another id, on all hardware; the new files, in order. The old ones are gone only after that.

        Published numbers move along.

        Raises:
            BaselineError: there is none, one of the new ones is there already, or a file cannot be read or written.
        """
        if not re.fullmatch(_CASE, new):
            raise BaselineError(
                f"{new!r}: a case is ARM/WORKLOAD or ARM/WORKLOAD/LOAD, of letters, digits, '.', '_' and '-'"
            )
        moved = self._renamed(suite, old, new)
        if not moved:
            raise BaselineError(f"{self.root}: no hardware has a baseline of {suite} {old}")
        if taken := [str(place) for _, place, _ in moved if place.exists()]:
            raise BaselineError(f"{taken[0]}: is there already; remove it first")
        replace_all({place: text for _, place, text in moved})
        try:
            for before, _, _ in moved:
                before.unlink()
        except OSError as error:
            raise BaselineError(
                f"{error.filename}: cannot be removed: {error.strerror}; the new file is written"
            ) from None
        return [place for _, place, _ in moved]

    def _renamed(self, suite: str, old: str, new: str) -> list[tuple[Path, Path, str]]:
        """Of every file of a case: where it is, where it belongs under the new id, and its text there."""
        moved = []
        for slug in self.hardware():
            place = self.path(slug, suite, new)
            if (each := self.read(slug, suite, old)) is not None:
                moved.append((self.path(slug, suite, old), place, self.text(place, replace(each, case=new))))
            constants = self.published_path(slug, suite, old)
            if constants.exists():
                text = published.renamed(text_of(constants), str(constants), new)
                moved.append((constants, self.published_path(slug, suite, new), text))
        return moved

    def entries(self) -> list[Entry]:
        """Every file that there is, in order of its path, read as far as it can be."""
        found = sorted(path for path in self.root.rglob("*.yaml") if path.is_file())
        return [self._entry(path) for path in found]

    def _entry(self, path: Path) -> Entry:
        hardware, *others = path.relative_to(self.root).with_suffix("").parts
        suite, case = (others[0], "/".join(others[1:])) if others else ("", "")
        constant = case.endswith(published.SUFFIX)
        name = case.removesuffix(published.SUFFIX)
        entry = Entry(path=path, hardware=hardware, suite=suite, case=name, published=constant)
        if not re.fullmatch(_CASE, entry.case):
            return replace(entry, hardware="", suite="", case="")
        try:
            if constant:
                return replace(entry, numbers=self._publication(hardware, suite, entry.case))
            return replace(entry, baseline=self.read(hardware, suite, case))
        except BaselineError as error:
            return replace(entry, error=str(error))

    def hardware(self) -> list[str]:
        """The slugs that there are, sorted."""
        return sorted(folder.name for folder in self.root.iterdir() if folder.is_dir()) if self.root.is_dir() else []

    def write_case(self, machine: str, suite: str, baseline: Baseline, *, any_hardware: bool) -> list[Path]:
        """Write a case's baseline to the file or the two files it belongs into, as ``write_all``; returns them.

        The calibration that a file has stays, where the baseline brings none: it tells the noise, not the level.
        """
        places = self._places(machine, suite, baseline, any_hardware=any_hardware)
        self.write_all(places)
        return list(places)

    def _places(self, machine: str, suite: str, baseline: Baseline, *, any_hardware: bool) -> dict[Path, Baseline]:
        """What belongs into which file."""
        parts = split(baseline, machine, any_hardware=any_hardware)
        places = {self.path(slug, suite, baseline.case): part for slug, part in parts.items()}
        return {path: _with_old_noise(path, part) for path, part in places.items()}

    def _named(self, path: Path) -> str:
        """The path as the header shows it: from the store's own folder, so that no machine's paths are stored."""
        return path.relative_to(self.root.parent).as_posix() if path.is_relative_to(self.root.parent) else path.name


def _with_old_noise(path: Path, baseline: Baseline) -> Baseline:
    """The new content of a file, with the calibration that it has; noise of another load or machine is not kept."""
    if baseline.calibration is not None or not path.exists():
        return baseline
    try:
        old = load(path)
    except BaselineError:  # what is replaced may be broken
        return baseline
    if old.calibration is None or old.facts != baseline.facts:
        return baseline
    return replace(baseline, calibration=old.calibration.only(baseline.metrics))
