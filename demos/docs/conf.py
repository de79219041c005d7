"""The documentation site: ``sphinx-build -W demos/docs DIRECTORY``. Its gallery runs the demos."""

import builtins
import logging
import shutil
import sys
import tempfile
from pathlib import Path

from sphinx_gallery.scrapers import figure_rst

import femcert

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

for name in ("skfem", "femcert"):
    logging.getLogger(name).setLevel(logging.WARNING)

project = "femcert"
author = copyright = "the femcert developers"
release = version = femcert.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinx-mathjax-offline",
    "reference_pages",
]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
exclude_patterns = ["_build", "README.md"]
templates_path = ["_templates"]
myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 3
suppress_warnings = ["config.cache"]

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
# No inventory is loaded: the site builds without a network.
intersphinx_mapping: dict = {}

html_theme = "furo"
html_title = "femcert"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {"navigation_with_keys": True}
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

# What a demo is asked to write to, one directory for each run.
PICTURES: dict[str, Path] = {}


class Directory:
    """The argument of a demo: a new directory for its picture."""

    def __call__(self, gallery_conf, script_vars):
        name = Path(script_vars["src_file"]).stem
        PICTURES[name] = Path(tempfile.mkdtemp(prefix=f"{name}-"))
        return [str(PICTURES[name])]

    def __repr__(self):
        # The same in every build, so that demos that did not change are not run again.
        return "Directory()"


def name_the_file(gallery_conf, filename):
    """A demo finds its meshes by its own place, which the gallery does not tell it."""
    builtins.__file__ = str(HERE.parent / Path(filename).name)


# The first cell of each notebook does the same, and takes away the arguments of Jupyter.
NOTEBOOK = """# Run this in the folder `demos` of femcert, which has its meshes and data beside it.
import os, sys
__file__, sys.argv = os.path.abspath("demo.ipynb"), ["demo", "."]"""


def pictures_written(block, block_vars, gallery_conf):
    """Show the pictures that a demo wrote."""
    name, shown = Path(block_vars["src_file"]).stem, []
    written = sorted(PICTURES[name].glob("*.png")) if name in PICTURES else []
    for picture, target in zip(written, block_vars["image_path_iterator"], strict=False):
        shutil.move(picture, target)
        shown.append(target)
    return figure_rst(shown, gallery_conf["src_dir"])


sphinx_gallery_conf = {
    "examples_dirs": "..",
    "gallery_dirs": "gallery",
    "filename_pattern": r"[\\/]ex\d+_",
    "ignore_pattern": r"[\\/](?!ex\d+_)[^\\/]*\.py$",
    "within_subsection_order": "FileNameSortKey",
    "nested_sections": False,
    "reset_argv": Directory(),
    "reset_modules": ("matplotlib", name_the_file),
    "first_notebook_cell": NOTEBOOK,
    "image_scrapers": (pictures_written,),
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 1e6,
    "thumbnail_size": (480, 240),
}
