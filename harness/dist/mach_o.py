"""Reads what a binary for macOS needs of the system, and whether its signature holds."""

import hashlib
import struct
from dataclasses import dataclass, field

PROCESSORS = {0x0100000C: "aarch64", 0x01000007: "x86_64"}
RPATH, CODE_SIGNATURE = 0x8000001C, 0x1D
LIBRARIES = {0xC, 0x80000018, 0x8000001F}
EMBEDDED_SIGNATURE, CODE_DIRECTORY = 0xFADE0CC0, 0xFADE0C02


@dataclass
class Found:
    processor: str
    libraries: list = field(default_factory=list)
    search_paths: list = field(default_factory=list)
    signed_pages: int = 0
    broken_pages: list = field(default_factory=list)


def read(program):
    """What its load commands say."""
    magic, processor, _, kind, count = struct.unpack_from("<IIIII", program)
    assert magic == 0xFEEDFACF and kind == 2, "it is no 64-bit program"
    found, at = Found(PROCESSORS[processor]), 32
    for _ in range(count):
        command, size = struct.unpack_from("<II", program, at)
        if command in LIBRARIES or command == RPATH:
            name = program[at + struct.unpack_from("<I", program, at + 8)[0] : at + size]
            text = name.split(b"\0")[0].decode()
            (found.search_paths if command == RPATH else found.libraries).append(text)
        elif command == CODE_SIGNATURE:
            signature(program, *struct.unpack_from("<II", program, at + 8), found)
        at += size
    return found


def signature(program, at, size, found):
    """Compares each page with the hash that was signed."""
    assert at + size <= len(program), "the signature lies behind the end"
    magic, _, count = struct.unpack_from(">III", program, at)
    assert magic == EMBEDDED_SIGNATURE
    for blob in range(count):
        start = at + struct.unpack_from(">II", program, at + 12 + 8 * blob)[1]
        if struct.unpack_from(">I", program, start)[0] == CODE_DIRECTORY:
            directory(program, start, found)


def directory(program, start, found):
    hashes, _, _, pages, limit = struct.unpack_from(">IIIII", program, start + 16)
    length, kind, _, page_bits = struct.unpack_from(">BBBB", program, start + 36)
    assert kind == 2 and length == 32, "the hashes are not of SHA-256"
    page = 1 << page_bits
    assert pages == -(-limit // page), "not every page is signed"
    found.signed_pages = pages
    for number in range(pages):
        content = program[number * page : min((number + 1) * page, limit)]
        wanted = program[start + hashes + number * length :][:length]
        if hashlib.sha256(content).digest() != wanted:
            found.broken_pages.append(number)
