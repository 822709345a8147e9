"""What test_report_page.sh counts and reads, by its first argument:

counted PAGE DB     spreads, nodes and traffic of a page against the database
thousand DB OUT     a copy of a run's database with 1000 peers of 20 rows each
hostile DB OUT      a sweep's database with names that want to be carried out
saving PAGE OUT     a page that leaves what it saves as text in the document
saved DOM           is that an SVG, are those tables?
paired PAGE TEXT    does the text have the differences that the page was given?
text DOM            the text of a document without its scripts
"""
import csv
import html
import io
import json
import math
import re
import shutil
import sqlite3
import sys
import xml.etree.ElementTree as tree

EVIL = "=cmd|'/C calc'!A0,\"<script>document.title='OWNED'</script>\u2028]]>&"


def data_of(page):
    text = open(page, encoding="utf-8").read()
    return json.loads(re.search(
        r'id="kith-data">(.*?)</script>', text, re.DOTALL).group(1))


def quantile(values, share):
    place = share * (len(values) - 1)
    below = int(place)
    above = min(below + 1, len(values) - 1)
    return values[below] + (place - below) * (values[above] - values[below])


def near(what, measured, expected, tolerance=1e-6):
    if measured is None or not math.isclose(measured, expected,
                                            rel_tol=tolerance, abs_tol=1e-12):
        sys.exit(f"{what}: expected {expected}, measured {measured}")


def spreads(run, base):
    """Each point of the spread: every peer's last row until then."""
    table = run["spread"]
    at = {name: i for i, name in enumerate(table["columns"])}
    rows = base.execute(
        "SELECT time_s, peer, consensus_distance, bytes_sent FROM series "
        "WHERE peer IS NOT NULL ORDER BY time_s, step").fetchall()
    last, i = {}, 0
    for point in table["rows"]:
        while i < len(rows) and rows[i][0] <= point[0] * (1 + 1e-8):
            last[rows[i][1]] = rows[i][2:]
            i += 1
        for column, name in enumerate(("consensus_distance", "bytes_sent")):
            values = sorted(row[column] for row in last.values())
            mean = sum(values) / len(values)
            if column == 0:
                mean = math.sqrt(sum(v * v for v in values) / len(values))
            for end, expected in (("low", quantile(values, 0.1)),
                                  ("mid", quantile(values, 0.5)),
                                  ("high", quantile(values, 0.9)),
                                  ("mean", mean)):
                near(f"{name}.{end} at {point[0]} s",
                     point[at[f"{name}.{end}"]], expected)
    if i != len(rows):
        sys.exit(f"spread: {i} of {len(rows)} rows were counted")
    return len(table["rows"])


def counted(page, database):
    run, = data_of(page)["runs"]
    base = sqlite3.connect(database)
    points = spreads(run, base)
    done, = base.execute("SELECT count(*) FROM marks JOIN mark_kinds USING(kind)"
                         " WHERE name = 'done' AND other IS NOT NULL").fetchone()
    traffic = sum(row[run["traffic"]["columns"].index("done")]
                  for row in run["traffic"]["rows"])
    peers, = base.execute("SELECT count(DISTINCT peer) FROM series").fetchone()
    nodes = run["nodes"]["rows"]
    slots = {row[0] for row in nodes}
    final = {row[1]: row[3] for row in nodes}
    sent, = base.execute("SELECT sum(most) FROM (SELECT max(bytes_sent) AS most "
                         "FROM series WHERE peer >= 0 GROUP BY peer)").fetchone()
    print(f"{points} points of {peers} peers; exchanges: expected {done}, "
          f"measured {traffic}; nodes: expected {peers}, measured "
          f"{len(final)} in {len(slots)} slots; bytes: expected {sent}, "
          f"measured {sum(final.values())}")
    return (traffic == done and len(final) == peers and points > 1 and
            sum(final.values()) == sent)


def thousand(database, out):
    shutil.copy(database, out)
    base = sqlite3.connect(out)
    base.execute("DELETE FROM series WHERE peer IS NOT NULL")
    base.execute("DELETE FROM marks")
    base.execute("UPDATE run SET value = '1000' WHERE key = 'peers'")
    names = ["run_id", "peer", "time_s", "step", "samples", "loss", "accuracy",
             "consensus_distance", "bytes_sent", "done", "failed", "attempts"]
    base.executemany(
        f"INSERT INTO series({', '.join(names)}) VALUES"
        f"({', '.join('?' * len(names))})",
        ((1, peer, 0.004 * (k + 1), 4 * k, 64 * k, 2 / (k + 1 + peer % 7),
          1 - 1 / (k + 2 + peer % 5), (1 + peer * 37 % 101) / (k + 1),
          10000 * (k + 1) + peer, k, 0, k)
         for k in range(20) for peer in range(1000)))
    kind, = base.execute(
        "SELECT kind FROM mark_kinds WHERE name = 'done'").fetchone()
    base.executemany(
        "INSERT INTO marks VALUES(1, ?, ?, ?, ?, 1, 1, 1, 0, NULL)",
        ((peer, 0.004 * (k + 1), kind, (peer * 7 + k * k + 1) % 1000)
         for k in range(20) for peer in range(1000)))
    base.commit()


def churned(database, out):
    """1,500 crashes that overlap, up to 40 ms; or 6,000, up to 0.1 s."""
    shutil.copy(database, out)
    base = sqlite3.connect(out)
    base.execute("DELETE FROM faults")
    count = 6000 if "most" in out else 1500
    base.executemany(
        "INSERT INTO faults(run_id, at_s, happened_s, fault, peer, statement)"
        " VALUES(1, ?1, ?1, ?2, ?3, 0)",
        ((at / 1e6, kind, k % 4) for k in range(count)
         for at, kind in ((16 * k + 1, "crash"), (16 * k + 50, "restart"))))
    base.commit()


def hostile(database, out):
    shutil.copy(database, out)
    base = sqlite3.connect(out)
    base.execute("UPDATE cells SET label = ? || cell", (EVIL,))
    base.execute("UPDATE run SET value = ? WHERE key = 'name'", (EVIL,))
    base.commit()


def saving(page, out):
    text = open(page, encoding="utf-8").read()
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    head, tail = text.rsplit("return () => plots", 1)
    probe = """
    const drawn = plots.find(entry => entry.graph);
    const leave = (id, content) => document.body.append(make('pre', {id}, content));
    leave('saved-svg', svgText(pictureOf(drawn)));
    leave('saved-csv', csvText(pictureOf(drawn).points()));
    leave('saved-points', String(drawn.lines.reduce((sum, line) => sum + line.points.length, 0)));
    leave('saved-names', JSON.stringify(drawn.lines.map(line => line.name)));
    if (single.length > 0) {
        const picture = peersPicture(moment(single[0], null, 'bytes'), true);
        leave('saved-peers', svgText(picture));
        leave('saved-traffic', csvText(picture.points()));
    }
    const pen = canvasPen(720, 400, 1);
    pictureOf(drawn).draw(pen);
    const ink = pen.root.getContext('2d').getImageData(0, 0, 720, 400).data;
    leave('saved-png', pen.root.toDataURL('image/png').slice(0, 22) + ' ' + new Set(ink).size);
    """
    open(out, "w", encoding="utf-8").write(head + probe + "return () => plots" + tail)


def saved(document):
    dom = open(document, encoding="utf-8").read()
    parts = {name: html.unescape(text) for name, text in re.findall(
        r'<pre id="saved-(\w+)">(.*?)</pre>', dom, re.DOTALL)}
    for name in ("svg", "peers"):
        if name not in parts:
            continue
        picture = tree.fromstring(parts[name])
        kinds = {element.tag.split("}")[1] for element in picture.iter()}
        print(f"{name}: elements {sorted(kinds)}")
        if not {"path", "text"} <= kinds or "script" in kinds:
            return False
    rows = list(csv.reader(io.StringIO(parts["csv"])))
    names = json.loads(parts["names"])
    expected = {("'" if name[0] in "=+-@" else "") + name for name in names}
    points = int(parts["points"])
    print(f"csv: expected {points} points of {len(names)} lines, measured "
          f"{len(rows) - 1} of {len({row[0] for row in rows[1:]})}; "
          f"png: {parts['png']} values of ink")
    if "traffic" in parts:
        traffic = list(csv.reader(io.StringIO(parts["traffic"])))
        print(f"traffic: {len(traffic) - 1} rows, first {traffic[1]}")
        if traffic[0] != ["from", "to", "exchanges", "failed", "bytes"]:
            return False
    head, ink = parts["png"].rsplit(" ", 1)
    return (len(rows) - 1 == points and {row[0] for row in rows[1:]} == expected
            and head.startswith("data:image/png") and int(ink) > 10)


def paired(page, text_file):
    def digits(value):
        return f"{float(f'{abs(value):.3g}'):g}"

    shown, found = open(text_file, encoding="utf-8").read(), 0
    for cell in data_of(page)["comparison"]["cells"]:
        one = cell.get("differences", {}).get("loss")
        if one is None:
            continue
        sign = "+" if one["mean"] > 0 else "\u2212"
        expected = f"{sign}{digits(one['mean'])} ± {digits(one['half_width'])}"
        print(f"{cell['label']}: expected {expected}, found "
              f"{expected in shown}")
        if expected not in shown:
            return False
        found += 1
    return found == 1


def text(document):
    dom = open(document, encoding="utf-8").read()
    dom = re.sub(r"<!--.*?-->", "", dom, flags=re.DOTALL)
    dom = re.sub(r"<(script|style)\b.*?</\1>", "", dom, flags=re.DOTALL)
    print(html.unescape(re.sub(r"<[^>]*>", "", dom)).replace("\n", " "))


if __name__ == "__main__":
    action = globals()[sys.argv[1]]
    sys.exit(action(*sys.argv[2:]) is False)
