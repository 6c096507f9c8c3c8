"""Tiny PDFs for tests: a few lines of words on each page."""

import io

from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject


def tiny_pdf(*pages, password=None):
    """Return the bytes of a PDF with these lines on its pages."""
    writer = PdfWriter()
    names = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Helvetica"}
    font = DictionaryObject({NameObject(key): NameObject(value) for key, value in names.items()})
    for lines in pages:
        page = writer.add_blank_page(300, 300)
        stream = DecodedStreamObject()
        rows = " ".join(f"({line}) Tj 0 -14 Td" for line in lines)
        stream.set_data(f"BT /F1 12 Tf 20 250 Td {rows} ET".encode())
        page[NameObject("/Contents")] = writer._add_object(stream)
        fonts = DictionaryObject({NameObject("/F1"): writer._add_object(font)})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
    if password:
        writer.encrypt(password, algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()
