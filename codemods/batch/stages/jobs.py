"""A piece of work that any process of any machine can do: one stage of one repository, from a folder to a folder."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
import traceback
from pathlib import Path
from typing import Any

from codemods.batch.errors import CampaignError, Exhausted, Failed, Refused, is_full
from codemods.batch.git import Git
from codemods.batch.sources import redact
from codemods.batch.stages.job import FACTS, LOG, RESULT, Job, Outcome, Tell


def perform(job: Job, tell: Tell = lambda _: None) -> Outcome:
    """Do ``job`` in its folder, which is made; nothing is raised for what is wrong with the repository or with us."""
    folder = Path(job.folder)
    begin = time.monotonic()
    facts: dict[str, Any] = {}
    status, reason = "done", ""
    secrets = job.source.secrets if job.source is not None else ()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / LOG, "a", encoding="utf-8", errors="backslashreplace", buffering=1) as log:

            def write(text: str) -> None:
                log.write(redact(text.rstrip("\n"), secrets) + "\n")

            try:
                facts = _perform(job, folder, write, tell)
            except (Refused, Failed, Exhausted) as error:
                write(f"{type(error).__name__.lower()}: {error}")
                raise
            except Exception as error:
                write("".join(traceback.format_exception(error)))
                raise
            facts |= {"stage": job.stage, "fingerprint": job.fingerprint, "base": facts.get("base", job.base)}
            facts["attempt"] = job.id
            facts["seconds"] = round(time.monotonic() - begin, 3)
            write_facts(folder / RESULT, facts)
    except Refused as error:
        status, reason = "refused", str(error)
    except (Failed, CampaignError) as error:
        status, reason = "failed", str(error)
    except Exhausted as error:
        status, reason = "exhausted", str(error)
    except Exception as error:
        status = "exhausted" if is_full(error) else "failed"
        reason = f"{type(error).__name__}: {error}" if status == "failed" else "no space left on the device"
    if status == "failed" and _no_room(folder):
        # Programs say it in many ways, and some only that a file could not be written.
        status, reason = "exhausted", "no space left on the device"
    # Here, where others are at work as well, and not where one process waits for the next result.
    shutil.rmtree(folder / "tree", ignore_errors=True)
    reason = " ".join(redact(reason, secrets).split())[:500]
    return Outcome(job, status, reason, facts, str(folder), time.monotonic() - begin)


def _perform(job: Job, folder: Path, log: Tell, tell: Tell) -> dict[str, Any]:
    result = folder / RESULT
    result.mkdir()
    if job.stage == "clone":
        from codemods.batch.stages.cloning import clone

        assert job.source is not None
        tell("cloning")
        return clone(Git(job.source, log), job.source, job.ref, result / "tree", job.limits)
    if job.stage == "rewrite":
        from codemods.batch.stages.rewriting import rewrite

        return rewrite(job, folder, result, Git(log=log), tell)
    from codemods.batch.stages.verifying import verify

    return verify(job, folder, result, Git(log=log), tell)


def _no_room(folder: Path) -> bool:
    probe = folder / "room"
    try:
        probe.write_bytes(b"\0" * (256 << 10))
    except OSError as error:
        return is_full(error)
    finally:
        with contextlib.suppress(OSError):
            probe.unlink(missing_ok=True)
    return False


def write_facts(folder: Path, facts: dict[str, Any]) -> None:
    """Write ``facts`` last of all, to disk: where they are, the result is whole."""
    with open(folder / FACTS, "w", encoding="utf-8") as file:
        json.dump(facts, file, indent=1)
        file.flush()
        os.fsync(file.fileno())


def read_facts(folder: Path) -> dict[str, Any] | None:
    """The facts of a result; None where it is not whole."""
    try:
        facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return facts if isinstance(facts, dict) else None
