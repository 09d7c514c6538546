"""Annotations and docstrings: the whole public API has them, and the names imported late are visible to editors."""
import ast
import inspect
from pathlib import Path

import pytest

import ffn_numpy
from ffn_numpy import check, exercises, ffn, plots, training

PACKAGE = Path(ffn_numpy.__file__).parent
INIT = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))


def assigned(name):
    """The literal that __init__.py assigns to a name."""
    return next(ast.literal_eval(node.value) for node in INIT.body
                if isinstance(node, ast.Assign) and node.targets[0].id == name)


def seen_by_type_checkers():
    """Module -> names, from the imports under `if TYPE_CHECKING:`."""
    block = next(node for node in INIT.body if isinstance(node, ast.If) and node.test.id == "TYPE_CHECKING")
    return {node.module: {alias.name for alias in node.names} for node in block.body}


def test_type_checkers_see_every_name_that_is_imported_late():
    late = {module: set(names) for module, names in assigned("_LATER").items()}
    assert late == seen_by_type_checkers()
    names = set().union(*late.values())
    assert names <= set(assigned("__all__")), names - set(assigned("__all__"))


def test_all_is_complete_and_in_order():
    names = assigned("__all__")
    assert names == sorted(set(names))
    imported = {alias.name for node in INIT.body if isinstance(node, ast.ImportFrom) and node.level
                for alias in node.names}
    assert imported | set().union(*seen_by_type_checkers().values()) == set(names)


def test_the_package_says_that_it_is_typed():
    assert (PACKAGE / "py.typed").exists()


def public_callables():
    """Every public function, class, method and property, by its full name."""
    found = {f"ffn_numpy.{name}": getattr(ffn_numpy, name) for name in ffn_numpy.__all__}
    found["ffn_numpy.ffn.make_ffn"] = ffn.make_ffn
    for module in (training, plots, check, exercises):
        found |= {f"{module.__name__}.{name}": thing for name, thing in vars(module).items()
                  if not name.startswith("_") and getattr(thing, "__module__", None) == module.__name__}
    for name, cls in list(found.items()):
        if inspect.isclass(cls):
            methods = {f"{name}.{method}": thing for c in reversed(cls.__mro__) if c.__module__.startswith("ffn_numpy")
                       for method, thing in vars(c).items() if not method.startswith("_") or method == "__call__"}
            found |= methods
    functions = {name: thing.fget if isinstance(thing, property) else getattr(thing, "__func__", thing)
                 for name, thing in found.items()}
    return {name: thing for name, thing in functions.items() if inspect.isfunction(thing) or inspect.isclass(thing)}


CALLABLES = public_callables()


@pytest.mark.parametrize("name", CALLABLES)
def test_a_docstring_starts_with_a_whole_line(name):
    doc = inspect.getdoc(CALLABLES[name])
    assert doc and doc.splitlines()[0].endswith((".", ":"))


@pytest.mark.parametrize("name", CALLABLES)
def test_parameters_and_return_are_annotated(name):
    function = CALLABLES[name]
    if inspect.isclass(function):
        if not inspect.isfunction(function.__init__):  # an exception or a NamedTuple
            return
        function = function.__init__
    signature = inspect.signature(function)
    bare = [p.name for p in signature.parameters.values() if p.annotation is p.empty and p.name not in ("self", "cls")]
    assert not bare and signature.return_annotation is not signature.empty


@pytest.mark.parametrize("name", ["FeedForward", "GatedFeedForward", "MixtureOfExperts", "TransformerBlock",
                                  "RealLayer", "Route", "Activation"])
def test_attributes_are_annotated(name):
    cls = getattr(ffn_numpy, name)
    known = set().union(*(inspect.get_annotations(c) for c in cls.__mro__))
    assert known
    if hasattr(cls, "random"):
        assert set(vars(cls.random(8))) <= known
    assert set(getattr(cls, "shapes", ())) <= known
