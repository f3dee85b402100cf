"""Fetching a published set when the user asks for it: resumed where it stopped, checked, and only then put in place."""

from __future__ import annotations

import hashlib
import http.client
import os
import tarfile
import tempfile
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from credro._names import ArgumentError, one_of
from credro.data.load import data_root
from credro.data.sources import SOURCES, Remote, Source

Progress = Callable[[str, int, "int | None"], None]
"""Called with the file's name, the bytes that are here, and the bytes in all (None: the server did not say)."""

BLOCK = 1 << 18


class DownloadError(RuntimeError):
    """A set could not be fetched; the message says why and what to do."""


def get(
    name: str,
    root: str | Path | None = None,
    *,
    progress: Progress | None = None,
    source: Source | str | None = None,
    timeout: float = 30.0,
    attempts: int = 3,
) -> list[Path]:
    """Fetch a set below ``root`` (see ``data_root``) and return the files and folders it consists of.

    What is already there and complete is left alone. source: the address of a mirror that has the same files, or a
    ``Source`` of one's own. A connection that breaks is taken up again, ``attempts`` times in a row without progress.
    """
    files = _files(name, source)
    where = data_root(root)
    return [_fetch(where, file, progress, timeout, attempts) for file in files]


def _files(name: str, source: Source | str | None) -> tuple[Remote, ...]:
    if isinstance(source, Source):
        return source.files
    known = SOURCES[one_of("name", name, SOURCES)]
    if known.embedded:
        raise DownloadError(f"{name!r} needs no download: credro.data.load({name!r}) reads it")
    if not known.files:
        raise DownloadError(f"{name!r} cannot be fetched by credro: get it from {known.page}")
    if source is None:
        return known.files
    return tuple(replace(file, url=f"{source.rstrip('/')}/{_file_name(file)}") for file in known.files)


def _file_name(file: Remote) -> str:
    return file.url.rpartition("/")[2]


def _fetch(root: Path, file: Remote, progress: Progress | None, timeout: float, attempts: int) -> Path:
    """One file, or the folder that an archive unpacks to."""
    target = root / file.to
    if target.exists():
        return _complete(target, file)
    loaded = root / _file_name(file) if file.archive else target
    if not (loaded.is_file() and md5(loaded) == file.md5):
        _download(file, loaded, progress, timeout, attempts)
    if file.archive:
        unpack(loaded, root, file.to)
        _complete(target, file)
        loaded.unlink()
    return target


def _complete(target: Path, file: Remote) -> Path:
    """What is there is the set, or the user is asked: nothing of theirs is overwritten."""
    if file.archive:
        missing = [name for name in file.holds if not (target / name).exists()]
        if missing:
            raise DownloadError(
                f"{target} exists, but lacks {', '.join(missing)}: remove it, or choose another root, and fetch again"
            )
    elif (found := md5(target)) != file.md5:
        raise DownloadError(
            f"{target} exists, but is not the published file (md5 {found}, published {file.md5}): "
            f"remove it, or choose another root, and fetch again"
        )
    return target


def _download(file: Remote, target: Path, progress: Progress | None, timeout: float, attempts: int) -> None:
    """``file`` to ``target``: written aside as ``target.part``, renamed when its checksum is right."""
    if not file.url.startswith(("http://", "https://")):
        raise ArgumentError("url", f"url must begin with http:// or https://, got {file.url!r}")
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    resumed = _size(part) > 0
    failures = 0
    while True:
        before = _size(part)
        try:
            if _stream(file.url, part, target.name, progress, timeout):
                break
            error: Exception | str = "the connection ended early"
        except urllib.error.HTTPError as refused:
            raise DownloadError(f"{file.url}: the server answers {refused.code} {refused.reason}") from refused
        except (OSError, http.client.HTTPException) as broken:  # URLError and timeouts are OSErrors
            error = broken
        failures = 0 if _size(part) > before else failures + 1
        if failures >= attempts:
            raise DownloadError(
                f"{file.url}: {error}; {_size(part)} bytes are kept in {part}, and the next try goes on from there"
            )
    found = md5(part)
    if found != file.md5:
        part.unlink()
        if resumed:  # the first half may have been another file's: once more, from the beginning
            _download(file, target, progress, timeout, attempts)
            return
        raise DownloadError(f"{file.url}: md5 is {found}, published is {file.md5}; the file was thrown away")
    os.replace(part, target)


def _stream(url: str, part: Path, name: str, progress: Progress | None, timeout: float) -> bool:
    """Append what is missing to ``part``; True if that was all of it."""
    have = _size(part)
    request = urllib.request.Request(url, headers={"User-Agent": "credro", "Accept-Encoding": "identity"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        response = urllib.request.urlopen(request, timeout=timeout)
    except urllib.error.HTTPError as refused:
        if refused.code != 416 or not have:
            raise
        # nothing follows what we have: the checksum will tell whether it is the file or something longer
        return True
    with response:
        if have and (response.status != 206 or _range_start(response) != have):
            have = 0  # this server cannot resume: it sends everything again
        length = response.headers.get("Content-Length")
        total = have + int(length) if length else None
        with part.open("ab" if have else "wb") as out:
            while block := response.read(BLOCK):
                out.write(block)
                have += len(block)
                if progress:
                    progress(name, have, total)
    return total is None or have == total


def _range_start(response: http.client.HTTPResponse) -> int | None:
    """``Content-Range: bytes START-END/TOTAL``."""
    kind, _, span = response.headers.get("Content-Range", "").partition(" ")
    start = span.partition("-")[0]
    return int(start) if kind == "bytes" and start.isdecimal() else None


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def md5(path: Path) -> str:
    """The checksum that the publishers give; it finds accidents, and is no guard against forgery."""
    digest = hashlib.md5(usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def unpack(archive: Path, root: Path, folder: str) -> Path:
    """The folder ``folder`` of a tar file to ``root/folder``: whole or not at all.

    Only plain files and folders are taken, none that points outside: by ``tarfile``'s filter for data, and stricter.
    """
    if not hasattr(tarfile, "data_filter"):
        python = "Python 3.10.12, 3.11.4 or later"
        raise DownloadError(
            f"{archive} is not unpacked: that it is safe can be checked with {python}, not with this one"
        )
    target = root / folder
    with tempfile.TemporaryDirectory(dir=root, prefix=".unpack-") as scratch:
        try:
            with tarfile.open(archive) as tar:
                tar.extractall(scratch, filter=_plain)
        except tarfile.FilterError as error:
            raise DownloadError(f"{archive} is not safe: {error}") from error
        except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
            raise DownloadError(f"{archive} cannot be unpacked: {error}") from error
        if not (Path(scratch) / folder).is_dir():
            raise DownloadError(f"{archive} does not hold the folder {folder!r}")
        os.replace(Path(scratch) / folder, target)
    return target


def _plain(member: tarfile.TarInfo, scratch: str) -> tarfile.TarInfo | None:
    """A set has no links, and none of its names means a place on some system; the rest is ``data_filter``'s."""
    if not (member.isfile() or member.isdir()):
        raise tarfile.SpecialFileError(member)
    if member.name.startswith("/") or "\\" in member.name or ":" in member.name:
        raise tarfile.AbsolutePathError(member)
    return tarfile.data_filter(member, scratch)
