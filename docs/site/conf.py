"""How Sphinx makes the site from docs/: `cargo xtask docs`."""

import os
import re
import sys
import tomllib
from pathlib import Path

from pygments.lexers import CLexer, TextLexer

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))
# Before bh is imported.
os.environ.setdefault("BH_FALLBACK", "silent")
import beside  # noqa: E402
import reference  # noqa: E402

manifest = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
project = "bh"
author = "The bh maintainers"
release = version = manifest["version"]
repository = manifest["repository"]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon", "sphinx_design", "sphinx_gallery.gen_gallery"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
root_doc = "index"
exclude_patterns = ["engine-kit", "site", "gallery/*.ipynb", "features/*.ipynb", "**/README.rst"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4
autosummary_generate = True
# Words between single backticks.
default_role = "code"
# Programs that the tests compile and run are marked with a second word.
myst_number_code_blocks = []
nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]

html_theme = "pydata_sphinx_theme"
html_title = "bh"
html_show_sourcelink = False
# In full, as the pages are elsewhere.
templates_path = [str(HERE / "templates")]
html_static_path = ["style"]
html_css_files = ["site.css"]
html_favicon = "style/logo.svg"
html_search_scorer = str(HERE / "style/scorer.js")
html_context = {"default_mode": "auto"}
# All pages by section, on each of them.
html_sidebars = {"**": ["contents.html"]}
html_theme_options = {
    "github_url": repository,
    "logo": {"text": "bh", "image_light": "style/logo.svg", "image_dark": "style/logo.svg", "alt_text": "bh"},
    "show_toc_level": 2,
    "navbar_center": [],
    # Comments are paler than code in both.
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "github-dark",
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
copyright = f"{author}, MIT or Apache-2.0"  # noqa: A001

# Before Sphinx looks for pages.
reference.write(ROOT / "docs/reference")

sphinx_gallery_conf = {
    "examples_dirs": ["site/programs", "../examples/python"],
    "gallery_dirs": ["gallery", "features"],
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"__init__",
    "download_all_examples": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    # The examples show bh, which changes where they do not.
    "run_stale_examples": True,
    "within_subsection_order": "ExampleTitleSortKey",
    "show_signature": False,
    # How long it took to build a page is nobody's concern.
    "min_reported_time": 1e9,
    "write_computation_times": False,
    # Values of last lines are matplotlib's objects.
    "capture_repr": (),
}


def adapt(_, page, source):
    """The text of a page for the site: links to files outside of docs/ point to the repository."""

    def elsewhere(link):
        target = (ROOT / "docs" / page).parent / link[2]
        return f"]({repository}/blob/main/{os.path.relpath(target, ROOT)})" if link[2].startswith("..") else link[0]

    source[0] = re.sub(r"(\]\()((?:\.\./)+[^)]*)\)", lambda link: elsewhere((link[0], link[1], link[2])), source[0])


def compare(app, page, source):
    """At the end of a program's page in the gallery: its time on NumPy and on bh, unless programs do not run in this build."""
    folder, _, name = page.rpartition("/")
    if folder != "gallery" or not (beside.PROGRAMS / f"{name}.py").exists() or not app.config.sphinx_gallery_conf["plot_gallery"]:
        return
    lines = "\n".join(f"   {line}".rstrip() for line in beside.compare(name).splitlines())
    text = f"Beside NumPy\n------------\n\n.. code-block:: none\n\n{lines}\n\n"
    before, mark, after = source[0].partition(".. _sphx_glr_download_")
    source[0] = before + text + mark + after


def setup(app):
    """Sphinx's hook."""
    # The words after the fences of the pages, beside those that Pygments knows.
    for name, lexer in {"h": CLexer, "opencl": CLexer, "output": TextLexer}.items():
        app.add_lexer(name, lexer)
    app.connect("source-read", adapt)
    app.connect("source-read", compare)
    # Before napoleon, which reads the sections.
    app.connect("autodoc-process-docstring", reference.adapt, priority=400)
