"""The type stub names what the native module has."""

import ast
import inspect
from pathlib import Path

from tack import _core

PROTOCOLS = {"Controller", "AckPolicy"}


def test_the_stub_has_every_name():
    body = ast.parse(Path(_core.__file__).with_name("_core.pyi").read_text()).body
    described = {node.name: node for node in body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    real = {name for name in dir(_core) if not name.startswith("__")}
    assert set(described) - PROTOCOLS == real
    for name, node in described.items():
        if name in PROTOCOLS or not isinstance(node, ast.ClassDef):
            continue
        members = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
        members |= {item.target.id for item in node.body if isinstance(item, ast.AnnAssign)}
        members = {member for member in members if not member.startswith("__")}
        native = {member for member, _ in inspect.getmembers(getattr(_core, name)) if not member.startswith("_")}
        inherited = {member for member in native if member in dir(ValueError)}
        assert members == native - inherited, name
