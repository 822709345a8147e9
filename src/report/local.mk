# The page carries dygraphs and its own script; both are read at build time.
noinst_LIBRARIES += libkith_report.a
libkith_report_a_CFLAGS = $(GNU11)
libkith_report_a_CPPFLAGS = $(AM_CPPFLAGS) -DKITH_DYGRAPHS='"$(DYGRAPHS)"' \
  -DKITH_REPORT_SOURCE='"$(srcdir)/src/report"'
libkith_report_a_SOURCES = src/report/assets.c src/report/assets.h \
  src/report/compare.c src/report/compare.h \
  src/report/database.c src/report/database.h src/report/page.c \
  src/report/page.h src/report/report.c src/report/table.c \
  src/report/write.c src/report/write.h
REPORT_ASSETS = src/report/dygraphs-licence.txt src/report/page.css \
  src/report/page.js
EXTRA_DIST += $(REPORT_ASSETS)
src/report/libkith_report_a-assets.$(OBJEXT): $(REPORT_ASSETS)
