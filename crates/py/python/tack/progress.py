"""A progress bar of one line."""

from __future__ import annotations

import sys
import time


class Bar:
    """Says on standard error how many runs of how many are done: a bar on a terminal, else a line every ten seconds."""

    _WIDTH = 30

    def __init__(self, out=None):
        self._out = sys.stderr if out is None else out
        self._terminal = self._out.isatty()
        self._last = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if done < total and now - self._last < (0.1 if self._terminal else 10.0):
            return
        self._last = now
        if self._terminal:
            full = self._WIDTH * done // total
            end = "\n" if done == total else ""
            print(f"\r[{'=' * full}{' ' * (self._WIDTH - full)}] {done}/{total}", end=end, file=self._out, flush=True)
        else:
            print(f"{done} of {total} runs", file=self._out, flush=True)
