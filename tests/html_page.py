"""Reads a page as a visitor would: well formed, with its texts, addresses and the cells of all tables."""

from html.parser import HTMLParser

VOID = {"meta", "img", "link", "br", "hr", "input"}


class Page(HTMLParser):
    """Refuses wrong nesting; what scripts, styles and drawings contain is no text."""

    def __init__(self, source):
        super().__init__()
        self.open, self.tags, self.texts, self.rows = [], [], [], []
        self.feed(source)
        self.close()
        assert self.open == []

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())

    @property
    def addresses(self):
        names = ("src", "href", "srcset", "action", "data")
        return [attributes[name] for _, attributes in self.tags for name in names if name in attributes]

    @property
    def images(self):
        return sum(tag == "img" for tag, _ in self.tags)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"script", "style", "svg"} & set(self.open):
            self.texts.append(data)
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data.replace("\xa0", " ")
