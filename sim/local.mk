noinst_LIBRARIES += libkith_sim.a
libkith_sim_a_CFLAGS = $(C11)
libkith_sim_a_SOURCES =
