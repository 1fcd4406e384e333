"""Servers of another user at the usual ports: `strangers.py BINARY`, as root in a network of its own (`unshare -n`).

Prints a line for each prompt that one of them got, and for each command that used one.
"""
import http.server
import os
import subprocess
import sys
import threading

OTHER = 1001
LISTED = b'{"object":"list","data":[{"id":"m","owned_by":"vllm"}]}'
PROFILES = {11434: "ollama", 8080: "llama.cpp", 1234: "lmstudio", 8000: "vllm", 30000: "sglang"}


class Server(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        self.send_response(200)
        self.send_header("content-length", str(len(LISTED)))
        self.end_headers()
        self.wfile.write(LISTED)

    def do_POST(self):
        print(f"port {self.server.server_port} got a prompt", flush=True)
        self.send_error(500)


subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
for port, profile in PROFILES.items():
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), Server) as server:
        # The kernel's table names the owner of the socket's file.
        os.fchown(server.socket.fileno(), OTHER, -1)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for arguments in (["check"], ["check", "--profile", profile], ["serve", "--profile", profile, "--listen", "127.0.0.1:0"]):
            try:
                done = subprocess.run([sys.argv[1], *arguments], capture_output=True, text=True, timeout=4, check=False)
                refused = done.returncode != 0 and "another user of this machine" in done.stderr
            except subprocess.TimeoutExpired:
                refused = False
            if not refused:
                print(f"{' '.join(arguments)} used the server at port {port}", flush=True)
        server.shutdown()
