"""Requests with documents and images."""
import base64

from rig import message


def document(number, is_slow=False):
    """A PDF of one page. A slow one draws a form that draws the next one twice, and so on: 2^30 texts."""
    text = b"BT /F1 12 Tf 10 700 Td (text of %d) Tj ET" % number
    parts = {
        1: b"<</Type/Catalog/Pages 2 0 R>>",
        2: b"<</Type/Pages/Kids[3 0 R]/Count 1/MediaBox[0 0 600 800]/Resources<</Font<</F1 5 0 R>>/XObject<</X 10 0 R>>>>>>",
        3: b"<</Type/Page/Parent 2 0 R/Contents 4 0 R>>",
        4: stream(b"", text + (b" /X Do" if is_slow else b"")),
        5: b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    }
    for at in range(10, 41):
        draws, of = (b"/X Do /X Do", b"/XObject<</X %d 0 R>>" % (at + 1)) if at < 40 else (text, b"/Font<</F1 5 0 R>>")
        parts[at] = stream(b"/Type/XObject/Subtype/Form/BBox[0 0 1 1]/Resources<<%s>>" % of, draws)
    data, places = b"%PDF-1.7\n", {}
    for at, part in parts.items():
        places[at] = len(data)
        data += b"%d 0 obj\n%s\nendobj\n" % (at, part)
    table = b"".join(
        b"%010d 00000 n \n" % places[at] if at in places else b"0000000000 65535 f \n" for at in range(41)
    )
    end = b"trailer\n<</Size 41/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % len(data)
    return data + b"xref\n0 41\n" + table + end


def stream(members, data):
    return b"<<%s/Length %d>>\nstream\n%s\nendstream" % (members, len(data), data)


def documents(*files):
    return message(text=[block("document", {
        "type": "base64", "media_type": "application/pdf", "data": base64.b64encode(file).decode()
    }) for file in files] + [{"type": "text", "text": "x"}])


def images(*urls):
    return message(text=[block("image", {"type": "url", "url": url}) for url in urls] + [{"type": "text", "text": "x"}])


def block(kind, source):
    return {"type": kind, "source": source}
