#!/bin/sh
# Goal: files of earlier versions (run databases, recordings, checkpoints,
# certificates) are read, or refused by name with what to do.
# Method: tests/golden/old/ holds what 50ce217 wrote (schema 3, journal 1): a
# simulation with a fault, and a recorded lab; and a lab of journal 4. Reports
# say of them what they said then, the replay ends with the recorded bytes;
# copies of versions to come are refused. A change of format adds its files here and keeps these.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

old=$scratch/run-50ce217.db record=$scratch/recording-50ce217.db
cp "$top"/tests/golden/old/*.db "$scratch" || fail "the old files are missing"
chmod u+w "$scratch"/*.db

# The table, as 50ce217 itself printed it; columns came behind it since.
expect 0 report "$old" --csv --out "$scratch/table.csv"
cat >"$scratch/wanted" <<'END'
database,run_id,cell,label,seed,state,problem,violations,accuracy,loss,time_to_target_s,steps,bytes_mean,bytes_max,staleness_mean,staleness_max,consensus_distance,utilisation
"run-50ce217.db",1,1,"old sim",7,"done",,0,,1.22683016,,145,10219.3333,13022,4,58,0.382342885,0.748484848
END
tr -d '\r' <"$scratch/table.csv" | cut -d, -f1-18 |
    cmp -s - "$scratch/wanted" ||
    fail "the table of the old run: $(cat "$scratch/table.csv")"

# All its points, and a page.
expect 0 report "$old" --points --out "$scratch/points.csv"
[ "$(($(wc -l <"$scratch/points.csv") - 1))" -eq \
    "$(sql "$old" "SELECT count(*) FROM series")" ] || fail "points are missing"
expect 0 report "$old" "$record" --out "$scratch/page.html"

# The recording of journal 1: its peers exchanged otherwise, and it is named.
refused() {
    wanted=$1 pattern=$2
    shift 2
    expect "$wanted" "$@"
    one_line "$*" "$pattern"
}
refused 3 "journal of version 1, this kith reads 4 to 5; record the run again" \
    sim --replay "$record"
# That of journal 4: the same bytes of every model.
record=$scratch/recording-v4.db
expect 0 sim --replay "$record" --json
python3 - "$scratch/json" <<'PY' || fail "the old recording ends otherwise"
import json, sys
replay = json.load(open(sys.argv[1]))
assert replay["agrees"] and replay["steps"] == 360 and replay["events"] == 2002
assert [model["same_bytes"] for model in replay["models"]] == [True] * 3
PY

# Versions to come: named, with what to do.
change() {
    python3 - "$1" "$2" <<'PY'
import sqlite3, sys
sqlite3.connect(sys.argv[1]).executescript(sys.argv[2])
PY
}
change "$old" "PRAGMA user_version=6"
refused 4 "schema is version 6, this kith reads 1 to 5; give a .db" \
    report "$old" --out "$scratch/page.html"
change "$record" "UPDATE run SET value='9' WHERE key='journal'"
refused 3 "journal of version 9, this kith reads 4 to 5; record the run again" \
    sim --replay "$record"
change "$record" "PRAGMA user_version=6"
refused 3 "found schema 6, this kith reads 3 to 5; record the run again" \
    sim --replay "$record"

# A checkpoint: the same weights, and a run that goes on from it.
save=$scratch/train-50ce217.save
cp "$top/tests/golden/old/train-50ce217.save" "$save" && chmod u+w "$save" ||
    fail "the old checkpoint is missing"
expect 0 export "$save" --out "$scratch/old.safetensors"
[ "$(sha256sum <"$scratch/old.safetensors" | cut -d' ' -f1)" = \
    d9250a71d1a8a5a69951b7cbd9c2f603988d486c70281ab9029e79b28540283d ] ||
    fail "the weights of the old checkpoint are others"
expect 0 train --resume "$save" --out "$scratch"
grep -q "at step 80" "$scratch/err" || fail "the old run does not go on"

# Certificates: of version 1, which named no rank, refused with what to do; of
# version 2 the fingerprint. And an authority's public file.
refused 7 "another version of kith (the first named no rank): certify its" \
    keys show "$top/tests/golden/old/node-50ce217.crt"
expect 0 keys show "$top/tests/golden/old/node-v2.crt"
grep -q 63850f5702f786c4c28d729ef5d1dc7d038774c845602e0f4407f522e1b34f64 \
    "$scratch/json" || fail "the fingerprint of the old certificate is another"
expect 0 keys show "$top/tests/golden/old/ca-50ce217.pub"
finish
