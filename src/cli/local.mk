noinst_LIBRARIES += libkith_cli.a
libkith_cli_a_CFLAGS = $(GNU11) $(JANSSON_CFLAGS)
libkith_cli_a_CPPFLAGS = $(AM_CPPFLAGS) -DKITH_DATA_DIR='"$(pkgdatadir)"'
libkith_cli_a_SOURCES = \
  src/cli/calibrate.c \
  src/cli/calibrate.h \
  src/cli/channel_cost.c \
  src/cli/channel_cost.h \
  src/cli/checkpoint_open.c \
  src/cli/checkpoint_open.h \
  src/cli/cli.h \
  src/cli/command_completion.c \
  src/cli/command_doctor.c \
  src/cli/command_eval.c \
  src/cli/command_export.c \
  src/cli/command_init.c \
  src/cli/command_keys.c \
  src/cli/command_lab.c \
  src/cli/command_list.c \
  src/cli/command_peer.c \
  src/cli/command_plan.c \
  src/cli/command_replay.c \
  src/cli/command_report.c \
  src/cli/command_sample.c \
  src/cli/command_sim.c \
  src/cli/command_swarm.c \
  src/cli/command_topology.c \
  src/cli/command_train.c \
  src/cli/compute.c \
  src/cli/follow_client.c \
  src/cli/follow_client.h \
  src/cli/follow_server.c \
  src/cli/follow_server.h \
  src/cli/list_balance.c \
  src/cli/list_exchanges.c \
  src/cli/list_manifest.c \
  src/cli/measure_lab.c \
  src/cli/measure_lab.h \
  src/cli/message_sizes.c \
  src/cli/options.c \
  src/cli/own_cost.c \
  src/cli/peer_cost.c \
  src/cli/peer_cost.h \
  src/cli/peer_open.c \
  src/cli/peer_open.h \
  src/cli/plan_batch.c \
  src/cli/plan_command.h \
  src/cli/plan_facts.c \
  src/cli/plan_figures.c \
  src/cli/plan_links.c \
  src/cli/plan_measure.c \
  src/cli/plan_memory.c \
  src/cli/ranks_open.c \
  src/cli/resume.c \
  src/cli/run_open.c \
  src/cli/search.c \
  src/cli/search_candidates.c \
  src/cli/search_run.c \
  src/cli/search_command.h \
  src/cli/search_show.c \
  src/cli/suite_speed.c \
  src/cli/suite_speed.h \
  src/cli/swap_cost.c \
  src/cli/swap_cost.h \
  src/cli/swarm_command.h \
  src/cli/swarm_journal.c \
  src/cli/swarm_lab.c \
  src/cli/swarm_one.c \
  src/cli/sweep_command.h \
  src/cli/sweep_axes.c \
  src/cli/sweep_cells.c \
  src/cli/sweep_run.c \
  src/cli/terminal.c \
  src/cli/token_text.c

bin_PROGRAMS += kith
kith_SOURCES = src/cli/main.c
kith_CFLAGS = $(GNU11)
kith_LDADD = $(KITH_LIBS)
