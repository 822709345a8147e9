"""What test_report_map.sh counts: report_map.py PAGE DB NAME...

The page's places are the file's regions by name, each peer is in one, and its
traffic is what the marks of all peers and the summary say, slot by slot.
"""
import json
import math
import re
import sqlite3
import sys

# Also in test_report_page.sh: the document of a page.
DATA = r'<script type="application/json" id="kith-data">(.*?)</script>'


def table(run, key):
    return [dict(zip(run[key]["columns"], row)) for row in run[key]["rows"]]


def counted(base, peers, zone_of, slot_of):
    cells = {}
    for time_s, peer, other, name in base.execute(
            "SELECT time_s, peer, other, name FROM marks JOIN mark_kinds "
            "USING(kind) WHERE name IN ('done', 'failed', 'torn') AND "
            "other < ?", (peers,)):
        cell = cells.setdefault(
            (slot_of(time_s), zone_of(peer), zone_of(other)), [0, 0])
        cell[name != "done"] += 1
    return cells


def main():
    page, database, names = sys.argv[1], sys.argv[2], sys.argv[3:]
    text = open(page, encoding="utf-8").read()
    run, = json.loads(re.search(DATA, text, re.DOTALL).group(1))["runs"]
    base = sqlite3.connect(database)
    peers, = base.execute(
        "SELECT CAST(value AS INTEGER) FROM run WHERE key = 'peers'").fetchone()
    sent, = base.execute("SELECT CAST(value AS INTEGER) FROM summary "
                         "WHERE key = 'bytes.sent'").fetchone()
    graph, places, zones = run["graph"], table(run, "places"), table(run, "zones")
    first = [zone["first"] for zone in zones]
    if first[0] is None:
        zone_of = lambda peer: peer % len(zones)
    else:
        zone_of = lambda peer: max(
            i for i, begin in enumerate(first) if begin <= peer)
    wanted = counted(base, peers, lambda peer: zones[zone_of(peer)]["node"],
                     lambda time_s: math.floor(time_s / graph["slot_s"] + 1e-9))
    traffic = table(run, "traffic")
    found = {(row["slot"], row["node"], row["towards"]):
             [row["done"], row["failed"]] for row in traffic
             if row["done"] + row["failed"] > 0}
    nodes = {row["node"] for row in table(run, "nodes")}
    exchanges = sum(sum(cell) for cell in wanted.values())
    by_page = sum(row["bytes"] for row in traffic)
    print(f"{len(places)} places of {len(zones)} zones, {graph['slots']} slots of "
          f"{graph['slot_s']} s; exchanges: expected {exchanges}, measured "
          f"{sum(sum(cell) for cell in found.values())}; bytes: expected {sent}, "
          f"measured {by_page}; nodes with rows: {sorted(nodes)}")
    return (exchanges > peers and found == wanted and by_page == sent and
            [place["name"] for place in places] == names and
            sum(place["peers"] for place in places) == peers and
            nodes == set(range(len(places))) == {zone["node"] for zone in zones}
            and len({row["slot"] for row in traffic}) > 2 and
            all(row["slot"] < graph["slots"] for row in traffic))


sys.exit(0 if main() else 1)
