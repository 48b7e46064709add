"""The first stage: a repository comes to this machine, shallow, and nothing of it is executed or written out."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import tarfile
from pathlib import Path
from typing import Any

from codemods.batch.campaign.settings import Limits
from codemods.batch.errors import Failed, Refused
from codemods.batch.git import ATTRIBUTES, Git
from codemods.batch.sources import Source
from codemods.batch.stages.inspection import inspect


def clone(git: Git, source: Source, ref: str, folder: Path, limits: Limits) -> dict[str, Any]:
    """Clone ``source`` into ``folder``, which gets a ``.git`` and no files; return what is known of it.

    ``ref`` is a branch or tag, empty for the remote's HEAD. Raises :class:`Refused` for a tree that is not to be
    written and :class:`Failed` for one that cannot be had.
    """
    if source.is_missing:
        raise Failed(f"{source.local}: no such folder")
    words = ["--depth", "1", "--no-tags", "--single-branch", "--no-recurse-submodules", "--no-checkout", "--template="]
    # What is too large is not fetched at all, where the other side can leave it out.
    words += [f"--filter=blob:limit={limits.file_size + 1}", *git.far("upload-pack")]
    if ref:
        words += ["--branch", ref]
    # What is packed is smaller than what is written; twice the limit leaves room for what git holds meanwhile.
    room = (folder, 2 * limits.size)
    git.run(
        "clone",
        "--quiet",
        *words,
        "--",
        source.address,
        str(folder),
        cwd=folder.parent,
        timeout=limits.clone_timeout,
        growing=room,
    )
    git.run("config", "remote.origin.url", source.url, cwd=folder)
    for key in ("remote.origin.promisor", "remote.origin.partialclonefilter"):
        # Nothing is fetched later on: what is missing is refused below.
        with contextlib.suppress(Failed):
            git.run("config", "--unset", key, cwd=folder)
    (folder / ".git" / "info").mkdir(exist_ok=True)
    (folder / ".git" / "info" / "attributes").write_text(ATTRIBUTES)
    try:
        base = git.run("rev-parse", "--verify", "--quiet", "HEAD^{commit}", cwd=folder).decode().strip()
    except Failed:
        raise Refused("it has no commits") from None
    branch = git.run("rev-parse", "--abbrev-ref", "HEAD", cwd=folder).decode().strip()
    seen = inspect(git, folder, limits, source.local)
    return {
        "base": base,
        "base_branch": "" if branch == "HEAD" else branch,
        "tree_files": seen.files,
        "tree_bytes": seen.size,
        "links": seen.links,
        "submodules": seen.submodules,
    }


def write_tree(git: Git, clone: Path, folder: Path) -> None:
    """Write the files of ``clone`` into ``folder``, with a ``.git`` of its own that shares the objects."""
    folder.mkdir()
    shutil.copytree(clone / ".git", folder / ".git", copy_function=_link, symlinks=True)
    checkout(git, folder)


def unpack_tree(git: Git, packed: bytes, folder: Path) -> None:
    """Write the files of a clone that :func:`pack` made bytes of into ``folder``."""
    unpack(packed, folder)
    checkout(git, folder)


def checkout(git: Git, folder: Path) -> None:
    """Write the files of HEAD, which was inspected, byte for byte; links become files that hold their target."""
    git.run("checkout", "--quiet", "--force", "--detach", "HEAD", cwd=folder)


def pack(folder: Path, *names: str) -> bytes:
    """What ``folder`` has of ``names`` as bytes, to be sent to another machine."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name in names:
            if (folder / name).exists():
                archive.add(folder / name, name)
    return buffer.getvalue()


def unpack(packed: bytes, folder: Path) -> None:
    """Make ``folder`` of what :func:`pack` made bytes of; nothing in it can be written outside of it."""
    folder.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        _extract(archive, folder)


def _extract(archive: tarfile.TarFile, folder: Path) -> None:
    if hasattr(tarfile, "data_filter"):
        archive.extractall(folder, filter="data")
        return
    # Early releases of 3.10 and 3.11 have no filters.
    for member in archive.getmembers():
        target = os.path.normpath(os.path.join(folder, member.name))
        if not (member.isfile() or member.isdir()) or not target.startswith(os.path.join(folder, "")):
            raise Failed(f"{member.name}: not taken from an archive")
        archive.extract(member, folder)


def _link(source: str, target: str) -> str:
    # Objects and packs never change; everything else in there does.
    if f"{os.sep}objects{os.sep}" in source:
        try:
            os.link(source, target)
        except OSError:
            pass
        else:
            return target
    shutil.copy2(source, target)
    return target
