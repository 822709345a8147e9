#!/bin/sh
# Usage: source_digest.sh TOP
# Prints 16 digits that stand for the sources of a build: of the names and bytes
# of all files of include/, sim/ and src/ that are compiled or read by what is.
# The same for a checkout and a tarball, wherever it is built; what a build
# leaves in these folders is no part of it.
set -e
cd "$1"
files=$(find include sim src -type f \( -name '*.[ch]' -o -name '*.cu' \
    -o -name '*.cuh' -o -name '*.def' -o -name '*.sql' \) | LC_ALL=C sort)
# shellcheck disable=SC2086 # No name of a source has a blank.
sums=$(sha256sum $files)
printf '%s\n' "$sums" | sha256sum | cut -c 1-16
