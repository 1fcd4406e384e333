"""Raw frames of HTTP/2, as no client library would send them."""

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def length(of):
    if of < 127:
        return bytes([of])
    of, data = of - 127, b"\x7f"
    while of >= 128:
        data, of = data + bytes([of % 128 + 128]), of // 128
    return data + bytes([of])


def literal(name, value):
    """A header field that the other side is to remember, as HPACK writes it."""
    return b"\x40" + length(len(name)) + name + length(len(value)) + value


def literal_once(name, value):
    """A header field that the other side is not to remember."""
    return b"\x00" + length(len(name)) + name + length(len(value)) + value
