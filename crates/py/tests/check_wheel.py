"""Whether a wheel is what its name says: ``check_wheel.py WHEEL MACHINE``, such as ``aarch64``."""

import sys
import zipfile
from pathlib import Path

# ELF-64: gABI, e_machine.
MACHINES = {"x86_64": 62, "aarch64": 183}


def main(wheel: str, machine: str) -> None:
    name = Path(wheel).name
    assert name.startswith("tack-"), name
    assert "-cp310-abi3-manylinux" in name and name.endswith(f"{machine}.whl"), name
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        for needed in ("tack/__init__.py", "tack/_core.pyi", "tack/py.typed", "tack/print.mplstyle"):
            assert needed in names, needed
        (native,) = [one for one in names if one.endswith(".so")]
        assert native == "tack/_core.abi3.so", native
        head = archive.open(native).read(20)
    assert head[:6] == b"\x7fELF\x02\x01", head
    found = int.from_bytes(head[18:20], "little")
    assert found == MACHINES[machine], f"{native} is for machine {found}, not {MACHINES[machine]}"
    print(f"{name}: {machine}, {Path(wheel).stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main(*sys.argv[1:])
