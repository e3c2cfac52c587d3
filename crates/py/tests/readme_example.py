"""Prints the first example of a document: ``readme_example.py README.md | python``."""

import re
import sys
from pathlib import Path


def main(document: str) -> None:
    (example, *_) = re.findall(r"^```python\n(.*?)^```", Path(document).read_text(), re.MULTILINE | re.DOTALL)
    print(example)


if __name__ == "__main__":
    main(*sys.argv[1:])
