"""The repository itself: layout, imports, generated pages, what must not be in it."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lakecommit.options.page import markdown

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = {"__pycache__", "build", "dist", "node_modules", "spark-warehouse", "metastore_db", "artifacts"}
MAX_LINES = 400


def project_files():
    """Every file of the project: no caches, no environments, nothing that a build left."""
    for directory, names, files in os.walk(ROOT):
        names[:] = [
            name
            for name in names
            if name not in SKIPPED and not name.endswith(".egg-info") and (not name.startswith(".") or name == ".ci")
        ]
        yield from (Path(directory, name) for name in files if not name.startswith("."))


def text_files():
    for path in project_files():
        try:
            yield path, path.read_text()
        except UnicodeDecodeError:
            continue


def python_files(*tops):
    return sorted(path for top in tops for path in (ROOT / top).rglob("*.py") if "__pycache__" not in path.parts)


@pytest.mark.parametrize("name", ["state", "spark_ext"])
def test_packages_at_the_top_are_linked_into_lakecommit(name):
    link = ROOT / "lakecommit" / name
    assert link.is_symlink()
    assert os.readlink(link) == f"../{name}"
    assert (link / "__init__.py").samefile(ROOT / name / "__init__.py")


def test_the_page_of_options_is_current():
    assert (ROOT / "docs" / "options.md").read_text() == markdown(), "run: make docs"


def test_the_package_is_typed():
    assert (ROOT / "lakecommit" / "py.typed").exists()


def test_nothing_names_a_machine_or_a_registry():
    home = str(Path.home())
    forbidden = [r"/wor[k]/", r"/roo[t]/", r"/hom[e]/\w", r"pyp[i]\.", r"pythonhoste[d]", r"mave[n]\.", r"index-ur[l]"]
    pattern = re.compile("|".join([*forbidden, *([re.escape(home) + "/"] if home != "/" else [])]))
    here = Path(__file__)
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path, content in text_files()
        if path != here and (match := pattern.search(content))
    ]
    assert found == []


def test_nothing_is_left_to_be_done():
    # In two parts, so that this file passes, too.
    pattern = re.compile("TO" + r"DO|FIX" + r"ME|XX" + r"X\b|NotImplemented" + "Error")
    assert [str(path) for path, content in text_files() if path.suffix == ".py" and pattern.search(content)] == []


def test_files_are_small():
    packages = ("lakecommit", "state", "spark_ext", "tests", "benchmarks")
    sizes = {path: len(path.read_text().splitlines()) for path in python_files(*packages)}
    assert {str(path.relative_to(ROOT)): size for path, size in sizes.items() if size > MAX_LINES} == {}


def imports_of(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def test_spark_and_stores_are_known_in_one_place_each():
    wrong = []
    runs_spark = [ROOT / "lakecommit" / name for name in ("cli", "demo", "testing")]
    for path in (path for path in python_files("lakecommit") if not path.is_relative_to(ROOT / "lakecommit/spark_ext")):
        if any(path.is_relative_to(top) for top in runs_spark) or path == ROOT / "lakecommit" / "__init__.py":
            continue
        wrong += [(path, name) for name in imports_of(path) if name.startswith(("pyspark", "lakecommit.spark_ext"))]
    for path in (path for path in python_files("lakecommit") if path.parent != ROOT / "lakecommit" / "storage"):
        if not path.is_relative_to(ROOT / "lakecommit" / "testing"):
            wrong += [(path, name) for name in imports_of(path) if name.partition(".")[0] in {"obstore", "boto3"}]
    assert [f"{path.relative_to(ROOT)} imports {name}" for path, name in wrong] == []


def run_python(code, *, cwd):
    return subprocess.run([sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, check=False)


def test_spark_can_find_the_data_source_by_the_name_of_its_module(tmp_path):
    code = "import pkgutil; print([m.name for m in pkgutil.iter_modules() if m.name == 'pyspark_lakecommit'])"
    assert run_python(code, cwd=tmp_path).stdout.strip() == "['pyspark_lakecommit']"


def test_the_discovered_module_is_silent_without_pyspark(tmp_path):
    code = (
        "import sys; sys.modules['pyspark'] = None; sys.modules['pyspark.sql'] = None\n"
        "import pyspark_lakecommit; print(hasattr(pyspark_lakecommit, 'DefaultSource'))"
    )
    found = run_python(code, cwd=tmp_path)
    assert (found.stdout.strip(), found.stderr) == ("False", "")


def test_the_discovered_module_survives_a_broken_installation(tmp_path):
    code = (
        "import sys; sys.modules['fastavro'] = None\n"
        "import pyspark_lakecommit; print(hasattr(pyspark_lakecommit, 'DefaultSource'))"
    )
    found = run_python(code, cwd=tmp_path)
    assert found.stdout.strip() == "False"
    assert 'format("lakecommit") is not available' in found.stderr


def test_the_lock_has_every_direct_dependency():
    locked = {
        re.split(r"[=;]", line)[0].strip()
        for line in (ROOT / "requirements-lock.txt").read_text().splitlines()
        if line and not line.startswith("#")
    }
    project = (ROOT / "pyproject.toml").read_text().partition("[project.scripts]")[0]
    wanted = set(re.findall(r'"([a-z][a-z0-9-]*)(?:\[\w+\])?(?:[=>]=[\d.]+)?"', project)) & _direct(project)
    assert wanted
    assert wanted - locked == set()


def _direct(project):
    lists = re.findall(r"^(?:dependencies|spark|delta|dev) = \[(.*?)\]$", project, re.DOTALL | re.MULTILINE)
    return {re.split(r"[\[=>]", name)[0] for each in lists for name in re.findall(r'"([^"]+)"', each)}
