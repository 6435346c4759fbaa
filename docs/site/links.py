"""Checks the links of the site within itself: `links.py SITE` names pages that lead to no file, or to no place in one."""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The places of a page, and where its links lead."""

    def __init__(self, text):
        super().__init__()
        self.places, self.links = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id" or (tag == "a" and name == "name"):
                self.places.add(value)
            elif name in ("href", "src") and value:
                self.links.append(value)


def broken(site):
    """Pairs of a page and a link of it that leads nowhere."""
    pages = {path.resolve(): Page(path.read_text()) for path in site.rglob("*.html") if "_static" not in path.parts}
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            known = pages.get(target)
            if not target.is_file() or (parts.fragment and known and unquote(parts.fragment) not in known.places):
                yield path.relative_to(site.resolve()), link


def main():
    found = sorted(broken(Path(sys.argv[1])))
    for page, link in found:
        print(f"{page}: {link} leads nowhere")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
