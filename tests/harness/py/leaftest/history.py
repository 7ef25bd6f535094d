"""Histories of clients that are not idload, for idcheck; the format is that of tests/tools/history.h."""

import os
import struct

_RECORD = struct.Struct("=QqqqqIIHHB3x")
_ANSWER, _TAG_NAME, _SERVER_NAME = 0, 1, 2


def write_history(path, tag, server, ranges):
    """ranges: (sent_ns, received_ns, first, count) in the order of their answers."""
    with open(path, "wb") as file:
        file.write(b"LEAFHIS1")
        for kind, name in ((_TAG_NAME, tag.encode()), (_SERVER_NAME, server.encode())):
            file.write(_RECORD.pack(0, 0, 0, 0, len(name), 0, 0, 0, 0, kind))
            file.write(name + bytes(-len(name) % 8))
        for seq, (sent, received, first, count) in enumerate(ranges):
            file.write(_RECORD.pack(seq, sent, received, first, count, 0, 0, 0, 200, _ANSWER))


def read_ids(path):
    """The ids in a history, in the order of their answers; what is not written yet is missing, also
    all of it."""
    if not os.path.exists(path):
        return []
    with open(path, "rb") as file:
        data = file.read()
    ids, at = [], len(b"LEAFHIS1")
    while at + _RECORD.size <= len(data):
        _, _, _, first, count, _, _, _, status, kind = _RECORD.unpack_from(data, at)
        at += _RECORD.size
        if kind != _ANSWER:
            at += count + -count % 8
        elif status == 200:
            ids += range(first, first + count)
    return ids
