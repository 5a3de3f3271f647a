"""Who may call whom: the layers of docs/architecture.md, module by module, deferred imports included."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MOST_AT_THE_TOP = 8

# From the words up to what people run; rooms of one layer do not know each other. The top of the package has the words.
LAYERS: tuple[frozenset[str], ...] = tuple(
    map(
        frozenset,
        (
            {"model", "errors", "clock", "schema", "commands", "epoch_ranges", "watermark"},
            {"concurrency", "expressions"},
            {"storage"},
            {"state"},
            {"formats"},
            {"writing", "options"},
            {"leases"},
            {"progress"},
            {"reading"},
            {"restarting"},
            {"sealing"},
            {"committing"},
            {"listening"},
            {"observing", "releasing", "vacuuming"},
            {"recovering"},
            {"service"},
            {"spark_ext"},
            {"testing"},
            {"demo"},
            {"cli"},
        ),
    )
)
LAYER_OF = {room: number for number, layer in enumerate(LAYERS) for room in layer}
# What users import is made of the rooms, and the version that it states is everybody's.
FACE = "lakecommit"


def modules() -> dict[str, Path]:
    found = {}
    for top, prefix in (("lakecommit", ""), ("state", "lakecommit."), ("spark_ext", "lakecommit.")):
        for path in (ROOT / top).rglob("*.py"):
            inside = path.relative_to(ROOT)
            if "__pycache__" in inside.parts or inside.parts[:2] in (
                ("lakecommit", "state"),
                ("lakecommit", "spark_ext"),
            ):
                continue
            found[(prefix + ".".join(inside.with_suffix("").parts)).removesuffix(".__init__")] = path
    return found


MODULES = modules()


def imports_of(path: Path) -> set[str]:
    """The modules of lakecommit that `path` imports, at its top or later."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert not node.level, f"{path} has a relative import"
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return {name if name in MODULES else name.rpartition(".")[0] for name in found} & MODULES.keys()


def room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else FACE


def against_the_layers(graph: dict[str, set[str]]) -> list[str]:
    """Imports that go up, or across between rooms of one layer. The words know each other, as far as they form no
    cycle."""
    wrong = []
    for module, imported in sorted(graph.items()):
        for other in sorted(imported):
            room, called = room_of(module), room_of(other)
            if FACE in (room, called) or room == called:
                continue
            below = LAYER_OF[called] < LAYER_OF[room] or (LAYER_OF[called], LAYER_OF[room]) == (0, 0)
            if not below:
                wrong.append(f"{module} imports {other}")
    return wrong


def cycles(graph: dict[str, set[str]]) -> list[str]:
    """Names that are left once nothing can be taken away whose imports are all gone."""
    left = {name: set(imported) - {name} for name, imported in graph.items()}
    while free := [name for name, imported in left.items() if not imported & left.keys()]:
        for name in free:
            del left[name]
    return sorted(left)


GRAPH = {name: imports_of(path) - {name} for name, path in MODULES.items()}


def test_every_room_has_its_layer():
    assert {room_of(module) for module in MODULES} - {FACE} == LAYER_OF.keys()


def test_calls_go_down_only():
    assert against_the_layers(GRAPH) == []


def test_neither_modules_nor_packages_form_a_cycle():
    assert cycles({name: imported - {FACE} for name, imported in GRAPH.items()}) == []
    rooms: dict[str, set[str]] = {}
    for module, imported in GRAPH.items():
        rooms.setdefault(room_of(module), set()).update(map(room_of, imported))
    assert cycles({room: called - {FACE} for room, called in rooms.items()}) == []


@pytest.mark.parametrize(
    ("module", "other"),
    [
        ("lakecommit.progress.epochs", "lakecommit.sealing.sealer"),
        ("lakecommit.writing.encode", "lakecommit.options.values"),
    ],
    ids=["up", "across"],
)
def test_an_import_against_the_layers_is_seen(module, other):
    assert against_the_layers({module: {other}}) == [f"{module} imports {other}"]


def test_a_cycle_is_seen():
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": set()}) == ["a", "b", "c", "d"]


def test_few_modules_lie_outside_of_the_rooms():
    assert len(list((ROOT / "lakecommit").glob("*.py"))) <= MOST_AT_THE_TOP


def test_every_room_says_what_it_owns_and_who_calls_it():
    for room in {room_of(module) for module, path in MODULES.items() if path.name == "__init__.py"} - {FACE}:
        said = ast.get_docstring(ast.parse(MODULES[f"lakecommit.{room}"].read_text()))
        assert said, room


def test_a_log_line_names_its_room():
    """Whoever reads one finds where it comes from."""
    for module, path in MODULES.items():
        names = set(re.findall(r'getLogger\("([^"]+)"\)', path.read_text()))
        assert names <= {f"lakecommit.{room_of(module)}"}, module
