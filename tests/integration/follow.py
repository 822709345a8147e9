"""A follower of `kith report --follow`, by its first argument:

refused ADDRESS          who must be refused is, and a page comes all the same
until ADDRESS OUT        follows the events until the run has ended; what the
                         page's document then is, into OUT
grows ADDRESS DB OUT     rows are added to DB; each time what is new is sent
locked ADDRESS DB         a writer holds DB: the page comes all the same, and what
                         was written when it has let go
same OUT PAGE            is that the document of a page that `kith report` wrote?
browser ADDRESS          the page draws, and adds points without being loaded
                         again; needs chromium
"""
import json
import os
import re
import socket
import sqlite3
import sys
import time
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))


def ask(address, text=None, **fields):
    place = urllib.parse.urlsplit(address)
    fields = {"Host": place.netloc, **fields}
    if text is None:
        text = (f"GET {place.path} HTTP/1.1\r\n" + "".join(
            f"{name}: {value}\r\n" for name, value in fields.items()) + "\r\n")
    connection = socket.create_connection((place.hostname, place.port), 30)
    connection.sendall(text.encode())
    return connection


def answer(connection):
    data = b""
    while found := connection.recv(1 << 16):
        data += found
    head, _, body = data.partition(b"\r\n\r\n")
    return int(head.split()[1]), head.decode(), body.decode()


def refused(address):
    place = urllib.parse.urlsplit(address)
    evil = f"evil.example:{place.port}"
    cases = [
        ("another Host", 403, ask(address, Host=evil)),
        ("another Origin", 403, ask(address, Origin="http://" + evil)),
        ("another token", 404, ask(address[:-5] + "0000/")),
        ("no token", 404, ask(f"http://{place.netloc}/")),
        ("POST", 405, ask(address, f"POST {place.path} HTTP/1.1\r\n"
                                   f"Host: {place.netloc}\r\n\r\n")),
        ("8 kB", 431, ask(address, ("GET / HTTP/1.1\r\nX: " + "x" * 8192)[:8192])),
        ("no HTTP", 400, ask(address, "hello\r\n\r\n"))]
    good = True
    for what, expected, connection in cases:
        status, _, _ = answer(connection)
        print(f"{what}: expected {expected}, measured {status}")
        good = good and status == expected
    # More than it takes at a time say nothing and stay: the reader is served
    # all the same, and so is one that reads the events beside them.
    stream = ask(f"{address}events")
    assert stream.recv(1 << 16)
    idle = [ask(address, "GET /") for _ in range(40)]
    status, head, body = answer(ask(address))
    print(f"beside 40 that say nothing: {status}, {len(body)} bytes")
    stream.settimeout(0.1)
    try:
        if not stream.recv(1 << 20):
            sys.exit("the stream gave its place up")
    except TimeoutError:
        pass
    for connection in (*idle, stream):
        connection.close()
    for field in ("Content-Security-Policy: default-src 'none'", "nosniff",
                  "connect-src 'self'", "frame-ancestors 'none'",
                  "no-referrer", "no-store"):
        if field not in head:
            print("no", field)
            good = False
    return good and status == 200 and body.count("<script>") == 2


def document_of(page):
    return json.loads(re.search(r'id="kith-data">(.*?)</script>', page,
                                re.DOTALL).group(1))


def apply(document, operations):
    for one in operations:
        path, place = one["p"], document
        for step in path if "v" in one else path[:-1]:
            place = place[step]
        if "v" in one:
            place[one["k"]:] = one["v"]
        else:
            place[path[-1]] = one["s"]


class Follower:
    """The document as a page has it."""

    def __init__(self, address):
        self.document = document_of(answer(ask(address))[2])
        self.generation = self.document.pop("generation")
        self.connection = ask(f"{address}events",
                              **{"Last-Event-ID": self.generation})
        self.lines = self.connection.makefile(encoding="utf-8", newline="\n")

    def change(self):
        """The next event, taken over; what it said."""
        kind = ""
        while True:
            line = self.lines.readline()
            if not line:
                sys.exit("the server hung up")
            name, _, value = line.rstrip("\n").partition(": ")
            if name == "id":
                self.generation += 1
                if int(value) != self.generation:
                    sys.exit(f"event {value}, not {self.generation}")
            elif name == "event":
                kind = value
            elif name == "data":
                change = json.loads(value)
                if kind == "whole":
                    self.document = change
                else:
                    apply(self.document, change)
                return change


def until(address, out):
    follower, events = Follower(address), 0
    while follower.document["live"]["state"] != "ended":
        follower.change()
        events += 1
    series = follower.document["runs"][0]["series"]["rows"]
    print(f"{events} events; {len(series)} rows of the series at the end")
    json.dump(follower.document, open(out, "w", encoding="utf-8"))
    return len(series) > 0


def grows(address, database, out):
    follower, base = Follower(address), sqlite3.connect(database)
    good = True
    for batch in range(3):
        before = len(follower.document["runs"][0]["series"]["rows"])
        base.execute("INSERT INTO series(run_id, peer, time_s, step, samples, "
                     "loss) SELECT 1, peer, max(time_s) + 1, max(step) + 1, "
                     "max(samples) + 16, 0.5 FROM series WHERE peer >= 0 "
                     "GROUP BY peer")
        base.commit()
        sent = next(len(one["v"]) for one in follower.change()
                    if "v" in one and one["p"][-2:] == ["series", "rows"])
        now = len(follower.document["runs"][0]["series"]["rows"])
        print(f"batch {batch}: {before} rows and {now - before} new; {sent} "
              "were sent")
        # A peer's last row may have been one that its thinning leaves out.
        good = good and 0 < now - before <= sent <= 2 * (now - before)
    json.dump(follower.document, open(out, "w", encoding="utf-8"))
    return good


def locked(address, database):
    follower, base = Follower(address), sqlite3.connect(database)
    base.isolation_level = None
    base.execute("BEGIN EXCLUSIVE")
    base.execute("INSERT INTO summary VALUES(1, 'held', '1')")
    os.utime(database)  # It is looked at, and cannot be read.
    pages = [answer(ask(address))[0] for _ in range(3) if not time.sleep(1)]
    base.execute("COMMIT")
    change = json.dumps(follower.change())
    print(f"while it was held: {pages}; then {change[:120]}")
    return pages == [200] * 3 and "held" in change


def same(out, page):
    followed = json.load(open(out, encoding="utf-8"))
    written = document_of(open(page, encoding="utf-8").read())
    followed.pop("live")
    return followed == written


def browser(address):
    from browser import Browser
    with Browser() as page:
        page.open(address)
        first = page.run("document.body.dataset.generation")
        page.run("window.sameDocument = true")
        ended = page.until("document.getElementById('live')?.className === "
                           "'ended'", 120)
        last = page.run("document.body.dataset.generation")
        kept = page.run("window.sameDocument === true")
        lines = page.run("document.getElementById('chart-accuracy')"
                         ".dataset.lines")
        print(f"generation {first} to {last}, ended {ended}, not loaded again "
              f"{kept}, lines of accuracy {lines}", page.complaints())
        return (ended and kept and int(lines) > 0 and int(last) > int(first)
                and not page.complaints())


if __name__ == "__main__":
    sys.exit(globals()[sys.argv[1]](*sys.argv[2:]) is False)
