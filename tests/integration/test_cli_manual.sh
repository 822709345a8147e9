#!/bin/sh
# Goal: the manual names every command, option, exit code and key there is.
# Method: the program's own lists and kith/exit.h against docs/kith.1.
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

"$kith" list keys | sed -n 's/^  \([a-z0-9._]*\) .*/\1/p' | sort >"$scratch/keys"
sed -n '/^\.\\" keys/,/^\.\\" end of keys/p' "$manual" |
    sed -n 's/^\([a-z0-9._]*\)	.*/\1/p' | sort >"$scratch/told"
diff "$scratch/keys" "$scratch/told" >&2 || fail "other keys than the loader's"

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
