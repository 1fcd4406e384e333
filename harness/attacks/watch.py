"""Other clients: streams that are read while something else goes on, in a process of their own.

    watch.py HOST_PORT HOST_PID UPSTREAM_PORT STREAMS EVENTS

Prints `ready` when every stream has begun, and at the end what became of them, as JSON: how many were whole, and
the longest time without an event. A host that waits for the processor on a busy machine does not compute: no pause
is longer than the time that the host computed in it. One more stream is read directly at the upstream: its pauses
are not the host's.
"""
import json
import os
import socket
import sys
import threading
import time


def computed(pid):
    """How long the host has computed, in seconds; without a process, the time itself."""
    if not pid:
        return time.time()
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rsplit(")", 1)[1].split()
    except OSError:
        return 0  # it is gone, which ends the stream
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def read(port, pid, path, events, begun, result):
    body = json.dumps({
        "model": f"do:tick:{events}", "max_tokens": 50, "stream": True,
        "messages": [{"role": "user", "content": "hi"}],
    }, separators=(",", ":"))
    pauses, tail, last = [], b"", None
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=60) as stream:
            stream.sendall((
                f"POST {path} HTTP/1.1\r\nhost: localhost\r\nx-api-key: k\r\ncontent-type: application/json\r\n"
                f"content-length: {len(body)}\r\n\r\n{body}"
            ).encode())
            while data := stream.recv(65536):
                now, busy = time.time(), computed(pid)
                tail = (tail + data)[-4096:]
                if last is not None:
                    pauses.append((min(now - last[0], busy - last[1]), last[0]))
                elif b"data:" in tail:
                    begun.release()
                else:
                    continue
                last = now, busy
                if b"message_stop" in tail or b"[DONE]" in tail:
                    result.append((True, max(pauses)))
                    return
    except OSError as error:
        tail += str(error).encode()
    result.append((False, max(pauses, default=(0, 0))))
    begun.release()


def main(host, pid, upstream, streams, events):
    begun, own, control = threading.Semaphore(0), [], []
    readers = [threading.Thread(daemon=True, target=read, args=(host, pid, "/v1/messages", events, begun, own)) for _ in range(streams)]
    readers.append(threading.Thread(daemon=True, target=read, args=(upstream, 0, "/v1/chat/completions", events, begun, control)))
    for reader in readers:
        reader.start()
    for _ in readers:
        if not begun.acquire(timeout=30):
            sys.exit("the streams did not begin")
    print("ready", flush=True)
    for reader in readers:
        reader.join()
    longest, when = max(pause for _, pause in own)
    print(json.dumps({
        "whole": sum(whole for whole, _ in own), "streams": streams, "pause": longest, "when": when,
        "machine": max(pause for _, (pause, _) in control),
    }))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
