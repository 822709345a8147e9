noinst_LIBRARIES += libkith_report.a
libkith_report_a_CFLAGS = $(GNU11)
libkith_report_a_SOURCES =
