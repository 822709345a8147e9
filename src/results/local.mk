# What a run leaves behind: its database, and pages made of it.
noinst_LIBRARIES += libkith_rundb.a
libkith_rundb_a_CFLAGS = $(GNU11) $(JANSSON_CFLAGS)
libkith_rundb_a_CPPFLAGS = $(AM_CPPFLAGS) \
  -DKITH_RUNDB_SOURCE='"$(srcdir)/src/results/rundb"'
libkith_rundb_a_SOURCES = \
  src/results/rundb/channel_use.c \
  src/results/rundb/events.c \
  src/results/rundb/join.c \
  src/results/rundb/journal_bytes.c \
  src/results/rundb/journal_read.c \
  src/results/rundb/json.c \
  src/results/rundb/query.c \
  src/results/rundb/rundb.c \
  src/results/rundb/rundb_store.h \
  src/results/rundb/rundb_open.c \
  src/results/rundb/rundb_reopen.c \
  src/results/rundb/series_columns.c \
  src/results/rundb/sql.c \
  src/results/rundb/summary.c \
  src/results/rundb/sweep_merge.c \
  src/results/rundb/sweep_plan.c \
  src/results/rundb/sweep_plan.h \
  src/results/rundb/sweep_runs.c

RUNDB_ASSETS = src/results/rundb/join.sql src/results/rundb/schema.sql \
  src/results/rundb/statements.sql
EXTRA_DIST += $(RUNDB_ASSETS)
src/results/rundb/libkith_rundb_a-join.$(OBJEXT) \
  src/results/rundb/libkith_rundb_a-rundb.$(OBJEXT) \
  src/results/rundb/libkith_rundb_a-rundb_open.$(OBJEXT): $(RUNDB_ASSETS)

# The page carries dygraphs and its own script; both are read at build time.
noinst_LIBRARIES += libkith_report.a
libkith_report_a_CFLAGS = $(GNU11) $(JANSSON_CFLAGS)
libkith_report_a_CPPFLAGS = $(AM_CPPFLAGS) $(CAIRO_CPPFLAGS) -DKITH_DYGRAPHS='"$(DYGRAPHS)"' \
  -DKITH_REPORT_SOURCE='"$(srcdir)/src/results/report"'
libkith_report_a_SOURCES = \
  src/results/report/compare.c \
  src/results/report/compare.h \
  src/results/report/compare_table.c \
  src/results/report/csv.c \
  src/results/report/csv.h \
  src/results/report/database.c \
  src/results/report/database.h \
  src/results/report/databases.c \
  src/results/report/databases.h \
  src/results/report/document.h \
  src/results/report/figure.h \
  src/results/report/figure_draw.c \
  src/results/report/figure_lines.c \
  src/results/report/merge.c \
  src/results/report/follow.c \
  src/results/report/follow_request.c \
  src/results/report/page.c \
  src/results/report/page.h \
  src/results/report/paired.c \
  src/results/report/report.c \
  src/results/report/settings_table.c \
  src/results/report/spread.c \
  src/results/report/spread.h
REPORT_ASSETS = src/results/report/dygraphs-licence.txt \
  src/results/report/page/answer.js \
  src/results/report/page/base.js \
  src/results/report/page/live.js \
  src/results/report/page/page.css \
  src/results/report/page/page.js \
  src/results/report/page/peers.js \
  src/results/report/page/picture.js \
  src/results/report/page/plots.js \
  src/results/report/page/runs.js \
  src/results/report/page/paired.js \
  src/results/report/page/tables.js \
  src/results/report/page/terms.js \
  src/results/report/report.sql
EXTRA_DIST += $(REPORT_ASSETS)
src/results/report/libkith_report_a-database.$(OBJEXT) \
  src/results/report/libkith_report_a-page.$(OBJEXT): $(REPORT_ASSETS)
