#!/bin/sh
# Goal: the manual names every command, option, exit code and key there is.
# Method: the program's own lists and kith/exit.h against docs/kith.1, whose keys
# docs/make_manual.py writes.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
manual=$top/docs/kith.1

# The manual's text without the escapes of dashes.
sed 's/\\-/-/g' "$manual" >"$scratch/manual"

for command in $("$kith" --help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do
    grep -q "kith $command " "$scratch/manual" || fail "no command $command"
    for option in $("$kith" "$command" --help |
        sed -n 's/^  \(--[a-z]*\).*/\1/p'); do
        grep -q -- "$option" "$scratch/manual" || fail "no option $option"
    done
done

python3 "$top/docs/make_manual.py" "$kith" <"$manual" >"$scratch/made" ||
    fail "docs/make_manual.py failed"
diff -u "$manual" "$scratch/made" >&2 || fail "other keys than the loader's: \
python3 docs/make_manual.py ./kith <docs/kith.1 >NEW"

sed -n 's/^ *KITH_EXIT_[A-Z]* = \([0-9]*\),.*/\1/p' \
    "$top/include/kith/exit.h" | sort >"$scratch/codes"
sed -n '/^\.SH EXIT STATUS/,/^\.SH EX/s/^\([0-9]*\)	.*/\1/p' "$manual" |
    sort >"$scratch/told"
diff "$scratch/codes" "$scratch/told" >&2 || fail "other exit codes"

for kind in faults checks; do
    [ "$("$kith" list $kind | wc -l)" -gt 1 ] || fail "kith list $kind is empty"
done
for fault in $("$kith" list faults | sed -n 's/^  \([a-z]*\) .*/\1/p'); do
    grep -q "$fault: \"" "$scratch/manual" || fail "no fault $fault"
done

# groff says what it does not understand.
if command -v groff >/dev/null; then
    [ -z "$(groff -man -ww -z -Tutf8 "$manual" 2>&1)" ] || {
        fail "groff has complaints"
        groff -man -ww -z -Tutf8 "$manual" >&2
    }
fi
finish
