#!/bin/sh
# Goal: issue 3's fourth acceptance: resume equals uninterrupted, bit for bit,
# for every optimiser, after kill -9 at 200 random moments, checkpoint writes
# among them.
# Method: tests/integration/test_resume.sh with more kills; KILLS, SEED.
top=${srcdir:-$(dirname "$0")/../..}
KILLS=${KILLS:-200} exec sh "$top/tests/integration/test_resume.sh"
