"""A headless Chromium over its DevTools protocol, with Python's library alone.

    with Browser(width=1280, height=900) as page:
        page.open("file:///tmp/run.html")
        page.run("document.title")          -> what the expression is worth
        page.picture("/tmp/run.png")        the whole page
"""
import base64
import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request


def program():
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Socket:
    """RFC 6455, the client's side: text frames, masked with zeros."""

    def __init__(self, url):
        host, _, path = url.removeprefix("ws://").partition("/")
        name, _, port = host.partition(":")
        self.socket = socket.create_connection((name, int(port)), timeout=120)
        self.bytes = b""
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            (f"GET /{path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\n"
             f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
             "Sec-WebSocket-Version: 13\r\n\r\n").encode())
        while b"\r\n\r\n" not in self.bytes:
            self.more()
        head, _, self.bytes = self.bytes.partition(b"\r\n\r\n")
        assert b" 101 " in head.split(b"\r\n")[0], head

    def more(self):
        found = self.socket.recv(1 << 20)
        if not found:
            raise ConnectionError("the browser hung up")
        self.bytes += found

    def take(self, count):
        while len(self.bytes) < count:
            self.more()
        found, self.bytes = self.bytes[:count], self.bytes[count:]
        return found

    def send(self, text):
        data = text.encode()
        size = len(data)
        head = (bytes([0x81, 0x80 | size]) if size < 126 else
                b"\x81\xfe" + struct.pack(">H", size) if size < 65536 else
                b"\x81\xff" + struct.pack(">Q", size))
        self.socket.sendall(head + bytes(4) + data)

    def receive(self):
        text = b""
        while True:
            first, size = self.take(2)
            if size == 126:
                size, = struct.unpack(">H", self.take(2))
            elif size == 127:
                size, = struct.unpack(">Q", self.take(8))
            data = self.take(size)
            if first & 0x0f in (0, 1):
                text += data
                if first & 0x80:
                    return text.decode()


class Browser:
    def __init__(self, width=1280, height=900, dark=False, arguments=()):
        self.folder = tempfile.mkdtemp(prefix="kith-browser.")
        self.process = subprocess.Popen(
            [program(), "--headless=new", "--no-sandbox", "--disable-gpu",
             "--disable-dev-shm-usage", "--hide-scrollbars",
             "--remote-debugging-port=0", "--no-first-run",
             f"--user-data-dir={self.folder}", *arguments, "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.count, self.events = 0, []
        port = os.path.join(self.folder, "DevToolsActivePort")
        for _ in range(600):
            if os.path.exists(port) and open(port).read().count("\n"):
                break
            time.sleep(0.1)
        number = open(port).read().split("\n")[0]
        for _ in range(100):
            pages = [one for one in json.load(urllib.request.urlopen(
                f"http://127.0.0.1:{number}/json")) if one["type"] == "page"]
            if pages:
                break
            time.sleep(0.1)
        self.socket = Socket(pages[0]["webSocketDebuggerUrl"])
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.size(width, height)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme",
             "value": "dark" if dark else "light"}])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def call(self, method, **parameters):
        self.count += 1
        self.socket.send(json.dumps({"id": self.count, "method": method,
                                     "params": parameters}))
        while True:
            message = json.loads(self.socket.receive())
            if message.get("id") == self.count:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            if "method" in message:
                self.events.append(message)

    def wait(self, method):
        """The next event of that name, also one that has come already."""
        while True:
            for at, event in enumerate(self.events):
                if event["method"] == method:
                    return self.events.pop(at)["params"]
            message = json.loads(self.socket.receive())
            if "method" in message:
                self.events.append(message)

    def size(self, width, height, mobile=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width,
                  height=height, deviceScaleFactor=1, mobile=mobile)

    def open(self, url):
        self.events.clear()
        self.call("Page.navigate", url=url)
        self.wait("Page.loadEventFired")

    def run(self, expression):
        result = self.call("Runtime.evaluate", expression=expression,
                           returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(str(result["exceptionDetails"]))
        return result["result"].get("value")

    def until(self, expression, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.run(expression):
                return True
            time.sleep(0.1)
        return False

    def complaints(self):
        """What the console says against the page."""
        return [event["params"] for event in self.events
                if event["method"] in ("Log.entryAdded",
                                       "Runtime.exceptionThrown",
                                       "Runtime.consoleAPICalled")]

    def mouse(self, kind, x, y, button="none", **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y,
                  button=button, **more)

    def picture(self, path, whole=True):
        data = self.call("Page.captureScreenshot", format="png",
                         captureBeyondViewport=whole)
        open(path, "wb").write(base64.b64decode(data["data"]))

    def paper(self, path):
        data = self.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.69,
                         printBackground=True)
        open(path, "wb").write(base64.b64decode(data["data"]))
