#!/usr/bin/env python3
"""A Hub for tests: server.py [WEIGHTS [CONFIG [VOCABULARY]]]

Listens on 127.0.0.1, prints its port, and ends when its standard input ends. The organisation in a repository's name
says how it behaves (ANSWERS and BODIES); all repositories have the same files. The endpoint is 127.0.0.1; large files
are redirected to localhost, which is another server to clients. /log lists the requests: method, host, path, range and
the token. WEIGHTS, CONFIG, VOCABULARY: files to serve as model.safetensors, config.json and vocab.txt. With the
environment variables CERTIFICATE and KEY, files of a certificate for localhost and its key, the server speaks HTTPS.
"""
import hashlib
import json
import os
import socket
import ssl
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SCHEME = "https" if "CERTIFICATE" in os.environ else "http"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def read(number, otherwise):
    if len(sys.argv) <= number:
        return otherwise
    with open(sys.argv[number], "rb") as file:
        return file.read()


WEIGHTS = read(1, hashlib.sha256(b"weights").digest() * 10000)
PICKLE_INDEX = json.dumps({"weight_map": {"a": "pytorch_model-1.bin"}}).encode()
INDEX = json.dumps({"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}).encode()
FILES = {
    "config.json": read(2, b'{"architecture": "vit_tiny_patch16_224"}\n'),
    "preprocessor_config.json": b'{"image_mean": [0.1, 0.2, 0.3]}',
    "processor_config.json": b'{"image_processor": {"image_mean": [0.1, 0.2, 0.3]}}',
    "tokenizer.json": b'{"model": {"type": "WordPiece"}}',
    "vocab.txt": read(3, b"[PAD]\n[UNK]\n"),
    "special_tokens_map.json": b"{}",
    "tokenizer_config.json": b'{"do_lower_case": true}',
    "sentence_bert_config.json": b'{"max_seq_length": 128}',
    "model.safetensors": WEIGHTS,
    "pytorch_model.bin": WEIGHTS[::-1],
    "model.safetensors.index.json": INDEX,
    "pytorch_model.bin.index.json": PICKLE_INDEX,
    "pytorch_model-1.bin": WEIGHTS[:5000],
    "model-1.safetensors": WEIGHTS[:1000],
    "model-2.safetensors": WEIGHTS[1000:3000],
}
LARGE = (".safetensors", ".bin")
# Which files a repository lacks.
LACKS = {
    "noconfig": ["config.json"],
    "transformers": ["processor_config.json"],
    "processor": ["preprocessor_config.json"],
    "vocabulary": ["tokenizer.json", "sentence_bert_config.json"],
    "pieces": ["tokenizer.json"],
    "pickle": ["model.safetensors", "model.safetensors.index.json"],
    "sharded": ["model.safetensors"],
    "holes": ["model.safetensors", "model-2.safetensors"],
    "evil": ["model.safetensors"],
    "absolute": ["model.safetensors"],
    "nojson": ["model.safetensors"],
    "huge": ["model.safetensors"],
    "pickles": ["model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"],
    "empty": ["model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json"],
}
INDEXES = {
    "evil": b'{"weight_map": {"a": "../../../evil.safetensors"}}',
    "absolute": b'{"weight_map": {"a": "/tmp/evil.safetensors"}}',
    "nojson": b'{"weight_map": {"a": ' * 100000,
}
# Configurations of the transformers library and of networks that attscope lacks.
CONFIGS = {
    "transformers": b'{"model_type": "vit"}',
    "processor": b'{"model_type": "clip"}',
    "bert": b'{"model_type": "bert"}',
    "vocabulary": b'{"model_type": "distilbert"}',
    "wav": b'{"model_type": "wav2vec2"}',
    "cait": b'{"architecture": "cait_s24_224"}',
}
# Repositories that do not exist, with the status and the error code of the Hub.
REFUSED = {
    "missing": (401, "RepoNotFound"),
    "timm": (401, "RepoNotFound"),
    "gated": (403, "GatedRepo"),
    "norevision": (404, "RevisionNotFound"),
    "teapot": (418, None),
}

seen = []
times = {}
lock = threading.Lock()


def first_time(what):
    with lock:
        times[what] = times.get(what, 0) + 1
        return times[what] == 1


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def reply(self, code, headers, body=b"", length=None):
        self.send_response(code)
        for name, value in headers.items():
            if value is not None:
                self.send_header(name, str(value))
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def break_off(self):
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True

    def do_HEAD(self):
        self.answer()

    def do_GET(self):
        self.answer()

    def answer(self):
        if self.path == "/log":
            self.reply(200, {}, "".join(line + "\n" for line in seen).encode())
            return
        host = self.headers["Host"].split(":")[0]
        with lock:
            seen.append(f"{self.command} {host} {self.path} {self.headers.get('Range', '-')} "
                        f"{self.headers.get('Authorization', '-')}")
        parts = self.path.split("/")
        if parts[1] == "torch":
            self.reply(200, {}, WEIGHTS)
        elif parts[1] == "cdn":
            self.send_body(parts[2], FILES[parts[4]])
        elif len(parts) == 6 and parts[3] == "resolve":
            self.resolve(parts[1], parts[2], parts[4], parts[5])
        else:
            self.reply(404, {})

    def resolve(self, organisation, name, revision, file):
        if organisation in REFUSED:
            code, error = REFUSED[organisation]
            self.reply(code, {"X-Error-Code": error}, b"no" * 1000)
            return
        if organisation == "renamed":
            self.reply(307, {"Location": f"/good/{name}/resolve/{revision}/{file}"})
            return
        if organisation.startswith("hops") and organisation != "hops0":  # "hops9": nine redirects
            self.reply(302, {"Location": f"/hops{int(organisation[4:]) - 1}/{name}/resolve/{revision}/{file}"})
            return
        if organisation == "busy" and first_time(self.command + file):
            self.reply(503, {})
            return
        if organisation == "down":
            self.reply(503, {})
            return
        if organisation in ("headers", "header"):
            self.close_connection = True
            self.wfile.write(b"HTTP/1.1 200 OK\r\nX-More: ")
            while True:  # until the client gives up; "header" sends a single line
                self.wfile.write(b"X-More: and more\r\n" * 1000 if organisation == "headers" else b"more" * 1000)
        commit = None if organisation == "nocommit" else COMMIT
        if file in LACKS.get(organisation, []) or file not in FILES:
            self.reply(404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit})
            return
        body = INDEXES.get(organisation, FILES[file]) if file.endswith(".index.json") else FILES[file]
        if file == "config.json":
            body = CONFIGS.get(organisation, body)
        if organisation == "foreign":
            body = body.replace(b"blocks.0.norm1", b"blocks.0.gamma")
        if not file.endswith(LARGE):
            etag = hashlib.sha1(b"blob %d\0" % len(body) + body).hexdigest()
            if organisation == "nohash":
                etag = "../../../etc/passwd"
            if organisation == "huge" and file.endswith(".index.json"):
                self.reply(200, {"X-Repo-Commit": commit, "ETag": f'"{etag}"', "X-Linked-Size": 10**12}, body)
                return
            self.reply(200, {"X-Repo-Commit": commit, "ETag": f'W/"{etag}"'}, body)
            return
        elsewhere = {
            "plain": "http://www.example.org/model",
            "file": "file:///etc/passwd",
            "user": "https://127.0.0.1@example.org/model",
            "loop": self.path,
            "samehost": f"/cdn/{organisation}/{name}/{file}",
            "downgrade": f"http://localhost:{self.server.server_port}/",
        }.get(organisation, f"{SCHEME}://localhost:{self.server.server_port}/cdn/{organisation}/{name}/{file}")
        if organisation == "loop" and self.command == "HEAD":
            elsewhere = f"http://localhost:{self.server.server_port}/"
        size = {"toolarge": 10**17, "nosize": None}.get(organisation, len(body))
        self.reply(302, {"X-Repo-Commit": commit, "X-Linked-Etag": f'"{hashlib.sha256(body).hexdigest()}"',
                         "X-Linked-Size": size, "Location": elsewhere}, b"moved")

    def send_body(self, organisation, body):
        if organisation == "foreign":
            body = body.replace(b"blocks.0.norm1", b"blocks.0.gamma")
        begin = 0
        headers = {}
        asked = self.headers.get("Range")
        half = len(body) // 2
        if asked and organisation != "norange":
            first, last = asked.removeprefix("bytes=").split("-")
            begin = int(first)
            end = int(last or len(body) - 1) + 1
            headers["Content-Range"] = f"bytes {begin}-{end - 1}/{len(body)}"
            body = body[:end]
        code = 206 if asked and organisation != "norange" else 200
        if organisation in ("broken", "norange", "wrongrange", "stall", "damagedpart", "seesaw") and not asked:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[:half])
            if organisation == "stall":
                self.wfile.flush()
                self.connection.settimeout(20)
                self.connection.recv(1)  # until the client gives up
            self.break_off()
        elif organisation == "seesaw":
            self.reply(416, {})
        elif organisation == "wrongrange":
            headers["Content-Range"] = f"bytes 5-{len(body) - 1}/{len(body)}"
            self.reply(206, headers, body[5:])
        elif organisation == "dead":
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.break_off()
        elif organisation == "short":
            self.reply(code, headers, body[begin:half])
        elif organisation == "long":
            self.reply(code, headers, body + b"more")
        elif organisation in ("endless", "onemore"):
            self.send_response(200)
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            try:
                self.wfile.write(body + b"x")
                while organisation == "endless":
                    self.wfile.write(b"x" * 65536)
            except OSError:
                pass
        elif organisation == "damaged":
            self.reply(code, headers, body[begin:-1] + b"?")
        elif organisation == "slow":
            self.send_response(code)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body) - begin))
            self.end_headers()
            try:
                for at in range(begin, len(body), 20000):
                    self.wfile.write(body[at:at + 20000])
                    self.wfile.flush()
                    time.sleep(0.02)
            except OSError:
                self.close_connection = True
        else:
            self.reply(code, headers, body[begin:])


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):  # clients of these tests end connections
        pass


server = Server(("127.0.0.1", 0), Handler)
if SCHEME == "https":
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.environ["CERTIFICATE"], os.environ["KEY"])
    server.socket = context.wrap_socket(server.socket, server_side=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdout.write(f"{server.server_port}\n")
sys.stdout.flush()
sys.stdin.read()
