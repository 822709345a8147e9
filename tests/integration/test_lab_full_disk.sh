#!/bin/sh
# Goal: a full disk, for the database or for the saves, ends the run with one
# clear line and exit 5; no process is left, what was written stays readable.
# Method: a small tmpfs for each in turn. SKIP where mounting is refused.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

small=$scratch/small
mkdir "$small"
mount -t tmpfs -o size=256k,mode=0777 kith-test "$small" 2>/dev/null ||
    skip "mounting a tmpfs is refused"
trap 'umount -l "$small"; rm -rf "$scratch"' EXIT

# Marks of an exchange every step fill 256 KiB in a second or two.
experiment 4 20000 "save: 500ms" >"$scratch/digits.yaml"
out=$small
lab 5 --set gossip.every=1 "$scratch/digits.yaml"
one_line "full disk, database" "no space left"
none_left "full disk, database"
database=$(find "$small" -name '*.db')
[ "$(sql "$database" "PRAGMA integrity_check")" = ok ] ||
    fail "the database is damaged"
rm -rf "${small:?}"/*

# With a journal, of which what there is can be carried out: no more, no less.
lab 5 --record --set gossip.every=1 "$scratch/digits.yaml"
one_line "full disk, journal" "no space left"
none_left "full disk, journal"
database=$(find "$small" -name '*.db')
expect 1 sim --replay "$database"
grep -q "nothing to compare" "$scratch/json" ||
    one_line "full disk, replay" "stops at event [0-9]* without an end"
rm -rf "${small:?}"/*
out=$scratch

# 167,178 parameters: one save is 1.3 MB with its optimiser state.
lab 5 --save "$small/saves" --set "model.layers=[64, 512, 256, 10]" \
    "$scratch/digits.yaml"
one_line "full disk, saves" "no space left"
none_left "full disk, saves"
[ -z "$(find "$small" -mindepth 1)" ] || fail "saves were left behind"
finish
