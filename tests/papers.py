"""Small documents of the formats that people have, made by the programs that make them."""

import io
import zipfile
from datetime import datetime
from email.message import EmailMessage

import docx

CONTAINER = """<?xml version="1.0"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">
<rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>"""


def word(modified=datetime(2024, 3, 1, 10, 0)):  # noqa: DTZ001 - as python-docx takes it
    """Return a Word document with a title, headings, both kinds of lists and a table."""
    paper = docx.Document()
    paper.add_heading("Harbour handbook", 0)
    paper.add_paragraph("The harbour has nine berths.")
    paper.add_heading("Arriving", 1)
    paper.add_paragraph("To moor a ship, follow these steps:")
    for step in ("Slow down to two knots.", "Throw the bow line."):
        paper.add_paragraph(step, style="List Number")
    paper.add_heading("Gear", 2)
    for line in ("A fender is a cushion of rope.", "Ropes are kept in the shed behind the office."):
        paper.add_paragraph(line, style="List Bullet")
    table = paper.add_table(rows=1, cols=2)
    for row in [("Berth", "Ship"), *((str(number), f"Ship number {number}") for number in range(60))]:
        cells = table.rows[0].cells if row[0] == "Berth" else table.add_row().cells
        cells[0].text, cells[1].text = row
    if modified is not None:
        paper.core_properties.modified = modified
    return _saved(paper.save)


def zipped(body, part, content):
    """Return a zip with one of its files replaced."""

    def save(out):
        with zipfile.ZipFile(io.BytesIO(body)) as before, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as after:
            for name in before.namelist():
                after.writestr(name, content if name == part else before.read(name))
            if part not in before.namelist():
                after.writestr(part, content)

    return _saved(save)


def book(*chapters, title="The Petrel", more=()):
    """Return an EPUB whose chapters are these pages."""
    listed = "".join(f'<item id="c{n}" href="text/c%20{n}.xhtml"/>' for n in range(len(chapters)))
    order = "".join(f'<itemref idref="c{n}"/>' for n in range(len(chapters)))
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<dc:title>{title}</dc:title><dc:date>2020-05-01</dc:date></metadata>"
        f'<manifest><item id="nav" href="nav.xhtml" properties="nav"/>{listed}</manifest>'
        f'<spine><itemref idref="nav"/>{order}</spine></package>'
    )

    def save(out):
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as files:
            files.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
            files.writestr("META-INF/container.xml", CONTAINER)
            files.writestr("OEBPS/book.opf", package)
            files.writestr("OEBPS/nav.xhtml", "<html><body><p>A table of contents.</p></body></html>")
            for number, chapter in enumerate(chapters):
                files.writestr(f"OEBPS/text/c {number}.xhtml", chapter)
            for name, content in more:
                files.writestr(name, content)

    return _saved(save)


def letter(
    text, subject="Berth fees", sender="Berta Falk <berta@example.org>", date="2026-03-02T09:12:00+01:00", **more
):
    """Return an e-mail; `html` is what it says as a page, `attached` the name of a file."""
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = subject, sender, "Ana <ana@example.org>"
    message["Date"] = datetime.fromisoformat(date)
    message.set_content(text)
    if "html" in more:
        message.add_alternative(more["html"], subtype="html")
    if "attached" in more:
        message.add_attachment(b"%PDF-1.4", maintype="application", subtype="pdf", filename=more["attached"])
    return message


def _saved(save):
    out = io.BytesIO()
    save(out)
    return out.getvalue()
