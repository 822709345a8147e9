"""What a run came to, for comparing: all rows of its database and all figures
of its summary (kith sim --json), but for what the wall clock and the machine
have made. Printed; equal runs print equal lines.

    ranks.py SUMMARY.json
"""

import json
import sqlite3
import sys

CLOCK = {"wall_s", "database", "speed"}
NOT_OURS = ("wall_s", "speed.", "started_utc")


def outcome(summary):
    """Its lines."""
    for key in sorted(summary.keys() - CLOCK):
        yield f"{key} {json.dumps(summary[key], sort_keys=True)}"
    database = sqlite3.connect(f"file:{summary['database']}?mode=ro", uri=True)
    tables = [name for (name,) in database.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
    assert "series" in tables and "marks" in tables
    for table in tables:
        columns = [row[1] for row in database.execute(
            f'PRAGMA table_info("{table}")')
            if "wall" not in row[1]]
        names = ", ".join(f'"{name}"' for name in columns)
        for line in sorted(map(repr, database.execute(
                f'SELECT {names} FROM "{table}"'))):
            if not any(word in line for word in NOT_OURS):
                yield f"{table} {line}"
    database.close()


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file_:
        print(*outcome(json.load(file_)), sep="\n")
