# shellcheck shell=sh disable=SC2154
# Rows, the table of them, and programs under a time limit, for run.sh. Sourced,
# never run.
#
# rows.tsv is the one record, appended to as results come; all that is counted
# and printed is read from it. A row is where it comes from (device, EMULATED),
# part, name, value, unit, limit or reference, and a verdict: ok, MISSED, info,
# or FAILED with its reason in parentheses.
#
# Needs out and work (folders), where, part and deadline (seconds of date +%s).

# row PART NAME VALUE UNIT LIMIT VERDICT
row() {
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$where" "$@" >>"$out/rows.tsv"
}

# take_rows LOG: those that a program printed; one of another form is a failure.
take_rows() {
    awk -F '\t' -v OFS='\t' -v on="$where" -v part="$part" '
        $1 != "ROW" { next }
        NF == 7 && $7 ~ /^(ok|MISSED|FAILED|info)$/ {
            $1 = on; print; next }
        { gsub("\t", " ")
          print on, part, "not understood", $0, "", "", "FAILED" }' \
        "$1" >>"$out/rows.tsv"
}

write_summary() {
    {
        printf 'kith on %s\nsource %s, %s, checks by --seed %s\ntook:%s\n' \
            "$machine" "$source" "$(date -u +%Y-%m-%dT%H:%MZ)" "$seed" "$took"
        awk -F '\t' '
            function line(r,  text, i) {
                for (i = cell[r, 1] == "EMULATED" ? 1 : 2; i <= 7; i++)
                    text = text sprintf("%-" width[i] "s  ", cell[r, i])
                sub(" +$", "", text)
                return text
            }
            BEGIN { split("8 12 72 28 9 8 0", most, " ") }
            NR == 1 { next }
            $2 == "libraries" && $4 == "missing" { print "without " $3 ": " $6 }
            { rows++; verdict = $7; sub(" .*", "", verdict); count[verdict]++
              bad[rows] = verdict == "FAILED" || verdict == "MISSED"
              $0 = $1 FS $2 FS $3 FS $4 FS $5 FS $7 FS $6
              for (i = 1; i <= 7; i++) {
                  cell[rows, i] = $i
                  if (length($i) > width[i]) width[i] = length($i)
                  if (width[i] > most[i]) width[i] = most[i] } }
            END {
                print ""
                for (r = 1; r <= rows; r++)
                    print line(r)
                # Once more, where the end of a long output is all that is kept.
                print ""
                for (r = 1; r <= rows; r++)
                    if (bad[r]) print line(r)
                printf "%d ok, %d MISSED, %d FAILED, %d info\n",
                    count["ok"], count["MISSED"], count["FAILED"], count["info"]
            }' "$out/rows.tsv"
    } >"$work/summary.txt"
    cp "$work/summary.txt" "$out/summary.txt"
}

failures() {
    awk -F '\t' '$7 ~ /^FAILED/ { n++ } END { print n + 0 }' "$out/rows.tsv"
}

# ---- programs under a time limit

# timed SECONDS LOG COMMAND...: its status, with 124 where it was ended; what it
# prints is appended to the log as it comes.
timed() {
    limit=$1 log=$2 spent=0
    shift 2
    left=$((deadline - $(date +%s) - grace))
    [ "$limit" -le "$left" ] || limit=$left
    [ "$limit" -gt 0 ] || return 125
    timeout -k "$grace" "$limit" "$@" >"$work/now.log" 2>&1 </dev/null &
    running=$!
    began=$(date +%s)
    wait "$running"
    code=$?
    running=
    spent=$(($(date +%s) - began))
    cat "$work/now.log" >>"$log"
    [ "$code" -ne 137 ] || [ "$spent" -lt "$limit" ] || code=124
    return "$code"
}

# verdict_of STATUS: in words, for one that is not 0.
verdict_of() {
    last=$(tail -n 1 "$work/now.log" | tr '\t' ' ' | cut -c 1-200)
    case $1 in
    124) echo "FAILED (timed out after $limit s)" ;;
    125) echo "FAILED (no time was left of $(limit_of total) s)" ;;
    126 | 127) echo "FAILED (no such program: see build.log)" ;;
    77) echo "FAILED (skipped: ${last#skipped: })" ;;
    *) echo "FAILED (exit status $1: $last)" ;;
    esac
}

# bench NAME LOG COMMAND...: a program that prints rows. What it printed before
# it failed counts.
bench() {
    limited=$1 log=$out/$2
    shift 2
    : >"$work/now.log"
    printf '== %s\n' "$*" >>"$log"
    before=$(failures)
    rows=$(wc -l <"$out/rows.tsv")
    timed "$(limit_of "$limited")" "$log" "$@"
    code=$?
    take_rows "$work/now.log"
    if [ "$code" -ne 0 ]; then
        if [ "$code" -ne 1 ] || [ "$(failures)" -eq "$before" ]; then
            row "$part" "$limited" '' '' '' "$(verdict_of "$code")"
        fi
        return 1
    fi
    [ "$(wc -l <"$out/rows.tsv")" -gt "$rows" ] ||
        row "$part" "$limited" '' '' '' 'FAILED (it printed no row)'
}
