"""The type stub names what the native module has, and says the same of it; everything public has a description."""

import ast
import inspect
from pathlib import Path

import tack
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


def described(text):
    return " ".join((text or "").split())


def test_help_says_what_the_stub_says():
    """Editors show the stub's descriptions, notebooks those of the native module."""
    body = ast.parse(Path(_core.__file__).with_name("_core.pyi").read_text()).body
    for node in body:
        if not isinstance(node, (ast.ClassDef, ast.FunctionDef)) or node.name in PROTOCOLS:
            continue
        native = getattr(_core, node.name)
        assert described(native.__doc__) == described(ast.get_docstring(node)) != "", node.name
        for item, after in zip(getattr(node, "body", []), [*node.body[1:], None]):
            if isinstance(item, ast.FunctionDef) and ast.get_docstring(item):
                assert described(getattr(native, item.name).__doc__) == described(ast.get_docstring(item)), (node.name, item.name)
            is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            if isinstance(item, ast.AnnAssign) and is_text and isinstance(native, type) and not issubclass(native, Exception):
                text = inspect.getattr_static(native, item.target.id).__doc__
                assert described(text) == described(after.value.value), (node.name, item.target.id)


def test_everything_public_is_described():
    for name in set(tack.__all__) - {"__version__"}:
        one = getattr(tack, name)
        assert described(one.__doc__), name
        if not isinstance(one, type):
            continue
        for member, value in vars(one).items():
            is_data = inspect.isdatadescriptor(value) and not isinstance(value, property) and "__slots__" in vars(one)
            if not member.startswith("_") and not is_data and (callable(value) or inspect.isdatadescriptor(value)):
                assert described(getattr(one, member, value).__doc__ or value.__doc__), f"{name}.{member}"


def test_every_field_of_a_report_is_described():
    body = ast.parse(Path(tack.results.__file__).read_text()).body
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            for item, after in zip(node.body, [*node.body[1:], None]):
                if isinstance(item, ast.AnnAssign):
                    assert isinstance(after, ast.Expr) and isinstance(after.value.value, str), f"{node.name}.{item.target.id}"
