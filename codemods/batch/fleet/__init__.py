"""What came out of a campaign, over all its repositories: a page, a text, and tables, all read off the ledger."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from pathlib import Path

from codemods.batch.campaign.settings import Campaign
from codemods.batch.errors import CampaignError, Exhausted, is_full
from codemods.batch.fleet import data, tables
from codemods.batch.ledger.ledger import Ledger
from codemods.source.errors import os_reason
from codemods.source.home import needs
from codemods.source.writing import replace_file

#: What a report can be; the first are made where none is asked for, Parquet only if its library is installed.
FORMS = ("html", "markdown", "csv", "parquet")


def write_reports(campaign: Campaign, folder: Path | None = None, forms: Sequence[str] = ()) -> list[Path]:
    """Write the reports of ``campaign`` into ``folder`` (by default ``report`` in the work folder); return their paths.

    Raises :class:`CampaignError` where nothing was done yet, where a form needs a library that is not installed, and
    where the folder cannot be written.
    """
    place = folder if folder is not None else campaign.work / "report"
    wanted = list(dict.fromkeys(forms)) or [form for form in FORMS if form != "parquet" or tables.has_parquet()]
    if "parquet" in wanted and not tables.has_parquet():
        raise CampaignError(needs("--format parquet", "pyarrow", "parquet"))
    tabular = [form for form in wanted if form in ("csv", "parquet")]
    paged = [form for form in wanted if form not in tabular]
    collects = gc.isenabled()
    # Of rows none refers to another: to look for cycles in a hundred thousand takes an eighth of the time.
    gc.disable()
    try:
        with Ledger.begun(campaign.work, campaign.file) as ledger:
            place.mkdir(parents=True, exist_ok=True)
            if not paged:
                return tables.write(ledger, place, tabular)
            fleet = data.read(campaign)
            known = {"repositories": fleet.repositories, "rules": sorted(fleet.rules, key=lambda row: str(row["rule"]))}
            return [*_pages(fleet, place, paged), *tables.write(ledger, place, tabular, known)]
    except OSError as error:
        if is_full(error):
            raise Exhausted(f"{place}: no space left on the device") from None
        raise CampaignError(f"cannot write {place}: {os_reason(error)}") from None
    finally:
        if collects:
            gc.enable()


def _pages(fleet: data.Fleet, place: Path, forms: Sequence[str]) -> Iterator[Path]:
    if "html" in forms:
        from codemods.batch.fleet.html import page

        yield _write(place / "report.html", page(fleet, place))
    if "markdown" in forms:
        from codemods.batch.fleet.markdown import text

        yield _write(place / "report.md", text(fleet))


def _write(path: Path, text: str) -> Path:
    replace_file(path, text.encode("utf-8", "backslashreplace"))
    return path
