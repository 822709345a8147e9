noinst_LIBRARIES += libkith_experiment.a
libkith_experiment_a_CFLAGS = $(GNU11)
libkith_experiment_a_SOURCES =
