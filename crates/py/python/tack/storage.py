"""Where a sweep keeps its files: a folder of this machine, or what fsspec reaches."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence

from ._core import SweepFolder


def _read(names: Callable[[], list[str]], read: Callable[[str], bytes]) -> Iterator[tuple[str, bytes]]:
    """The data files of a part. Another program may merge files meanwhile: then what takes their place is read."""
    seen: set[str] = set()
    is_complete = False
    while not is_complete:
        is_complete = True
        for name in sorted(names()):
            if name in seen or not name.endswith(".parquet"):
                continue
            try:
                content = read(name)
            except FileNotFoundError:
                is_complete = False
                continue
            seen.add(name)
            yield name, content


class FolderStorage:
    """A folder. Files are on the disk, whole, before they have their names."""

    def __init__(self, root: str):
        self._root = root
        self._folder = SweepFolder(root)

    def path(self, part: str) -> str:
        return os.path.join(self._root, part)

    def parts(self) -> list[str]:
        return self._folder.parts()

    def files(self, part: str) -> Iterator[tuple[str, bytes]]:
        folder = self.path(part)

        def names() -> list[str]:
            return os.listdir(folder) if os.path.isdir(folder) else []

        def read(name: str) -> bytes:
            with open(os.path.join(folder, name), "rb") as file:
                return file.read()

        return _read(names, read)

    def put(self, part: str, name: str, content: bytes) -> None:
        self._folder.put(part, name, content)

    def set_aside(self, part: str, names: Sequence[str]) -> None:
        self._folder.set_aside(part, list(names))

    def merge(self, part: str, name: str, content: bytes, obsolete: Sequence[str]) -> None:
        self._folder.merge(part, name, content, list(obsolete))


class UrlStorage:
    """Anything that fsspec reaches and where an object appears whole, as in S3."""

    def __init__(self, url: str):
        try:
            import fsspec
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(f"{url} needs fsspec, and what it needs for this kind of URL: pip install fsspec") from error
        self._url = url.rstrip("/")
        self._system, self._root = fsspec.core.url_to_fs(self._url)

    def path(self, part: str) -> str:
        return f"{self._url}/{part}"

    def _inside(self, *parts: str) -> str:
        return "/".join([self._root.rstrip("/"), *parts])

    def _names(self, *parts: str) -> list[str]:
        folder = self._inside(*parts)
        self._system.invalidate_cache()
        if not self._system.exists(folder):
            return []
        return sorted(path.rstrip("/").rsplit("/", 1)[-1] for path in self._system.ls(folder, detail=False))

    def parts(self) -> list[str]:
        return [name for name in self._names() if name.startswith("plan=")]

    def files(self, part: str) -> Iterator[tuple[str, bytes]]:
        return _read(lambda: self._names(part), lambda name: self._system.cat_file(self._inside(part, name)))

    def put(self, part: str, name: str, content: bytes) -> None:
        self._system.makedirs(self._inside(part), exist_ok=True)
        self._system.pipe_file(self._inside(part, name), content)

    def set_aside(self, part: str, names: Sequence[str]) -> None:
        for name in names:
            path = self._inside(part, name)
            with contextlib.suppress(FileNotFoundError):  # Somebody else was faster.
                self._system.mv(path, f"{path}.damaged")

    def merge(self, part: str, name: str, content: bytes, obsolete: Sequence[str]) -> None:
        self.put(part, name, content)
        for one in obsolete:
            if one != name:
                with contextlib.suppress(FileNotFoundError):
                    self._system.rm_file(self._inside(part, one))


def is_url(out: str) -> bool:
    """Whether it needs fsspec: a URL of a file is a path."""
    return "://" in out and not out.startswith("file://")


def storage_at(out: str):
    """The storage of a path or URL."""
    return UrlStorage(out) if is_url(out) else FolderStorage(out.removeprefix("file://"))
