"""Where a sweep keeps its files: a folder of this machine, or what fsspec reaches."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from ._core import SweepFolder


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
        names = os.listdir(folder) if os.path.isdir(folder) else []
        for name in sorted(names):
            if name.endswith(".parquet"):
                with open(os.path.join(folder, name), "rb") as file:
                    yield name, file.read()

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
        for name in self._names(part):
            if name.endswith(".parquet"):
                yield name, self._system.cat_file(self._inside(part, name))

    def put(self, part: str, name: str, content: bytes) -> None:
        self._system.makedirs(self._inside(part), exist_ok=True)
        self._system.pipe_file(self._inside(part, name), content)

    def set_aside(self, part: str, names: Sequence[str]) -> None:
        for name in names:
            path = self._inside(part, name)
            self._system.mv(path, f"{path}.damaged")

    def merge(self, part: str, name: str, content: bytes, obsolete: Sequence[str]) -> None:
        self.put(part, name, content)
        for one in obsolete:
            if one != name:
                self._system.rm_file(self._inside(part, one))


def storage_at(out: str):
    """The storage of a path or URL; URLs of files are paths."""
    if out.startswith("file://"):
        return FolderStorage(out.removeprefix("file://"))
    return UrlStorage(out) if "://" in out else FolderStorage(out)
