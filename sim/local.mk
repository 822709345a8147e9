noinst_LIBRARIES += libkith_sim.a
libkith_sim_a_CFLAGS = $(C11)
libkith_sim_a_SOURCES = \
  sim/aside.c \
  sim/aside.h \
  sim/points.c \
  sim/points.h \
  sim/delay.c \
  sim/delay.h \
  sim/losses.h \
  sim/delivery.c \
  sim/delivery.h \
  sim/directions.c \
  sim/directions.h \
  sim/dishonest.c \
  sim/dishonest.h \
  sim/divisions.c \
  sim/dump.c \
  sim/dump.h \
  sim/engine.c \
  sim/engine.h \
  sim/event_sort.c \
  sim/event_sort.h \
  sim/fair_sharing.c \
  sim/fair_sharing.h \
  sim/flows.c \
  sim/flows.h \
  sim/full_channel.c \
  sim/full_channel.h \
  sim/hosts.c \
  sim/hosts.h \
  sim/huge_pages.c \
  sim/huge_pages.h \
  sim/jobs.c \
  sim/jobs.h \
  sim/ledger.c \
  sim/ledger.h \
  sim/link_table.c \
  sim/link_table.h \
  sim/links.c \
  sim/links.h \
  sim/mail.c \
  sim/max_min.c \
  sim/max_min.h \
  sim/model_copies.c \
  sim/model_copies.h \
  sim/nodes.c \
  sim/nodes.h \
  sim/notes.c \
  sim/notes.h \
  sim/outbox.c \
  sim/outbox.h \
  sim/packets.c \
  sim/packets.h \
  sim/sim_peer.h \
  sim/peer_totals.c \
  sim/peer_totals.h \
  sim/protocol.h \
  sim/queue.c \
  sim/queue.h \
  sim/replay.c \
  sim/replay_run.h \
  sim/replay_messages.c \
  sim/replay_peer.c \
  sim/replay_result.c \
  sim/rank_log.c \
  sim/rank_log.h \
  sim/rank_models.c \
  sim/rank_models.h \
  sim/item_log.c \
  sim/item_log.h \
  sim/save_file.c \
  sim/save_file.h \
  sim/save_find.c \
  sim/save_find.h \
  sim/save_log.c \
  sim/save_log.h \
  sim/save_recall.c \
  sim/save_recall.h \
  sim/save_state.c \
  sim/save_state.h \
  sim/sim_saves.c \
  sim/sim_saves.h \
  sim/sim_ranks.c \
  sim/sim_ranks.h \
  sim/ranks_start.c \
  sim/same_time.c \
  sim/same_time.h \
  sim/scores.c \
  sim/scores.h \
  sim/sim_faults.c \
  sim/sim_faults.h \
  sim/sim_result.c \
  sim/sim_result.h \
  sim/sim_run.c \
  sim/threads.c \
  sim/threads.h \
  sim/timeline.c \
  sim/timeline.h \
  sim/trace.c \
  sim/trace.h \
  sim/watch.c \
  sim/watch.h \
  sim/windows.c \
  sim/windows.h \
  sim/windows_state.h \
  sim/work_pool.c \
  sim/work_pool.h \
  sim/workers.c \
  sim/workers.h \
  sim/world.h \
  sim/zone_traffic.c \
  sim/zone_traffic.h \
  sim/central/central_run.c \
  sim/central/central_state.h \
  sim/central/central_steps.c \
  sim/central/central_vectors.c \
  sim/central/doubling_allreduce.c \
  sim/central/easgd.c \
  sim/central/mpca.c \
  sim/central/naive_exchange.c \
  sim/central/quorum.c \
  sim/central/ring_allreduce.c \
  sim/central/scatter.c \
  sim/central/server.c \
  sim/central/server.h \
  sim/central/staged_exchange.c \
  sim/central/stages.c \
  sim/central/staleness_bound.c \
  sim/central/sync.c \
  sim/central/tree_allreduce.c \
  sim/central/treeeasgd.c \
  sim/central/vertical.c \
  sim/central/vertical.h

# The MPI module: kith-mpi.so, loaded at run time where mpirun has started
# several processes (include/kith/ranks.h).
if HAVE_MPI
mpidir = $(pkglibdir)
mpi_DATA = kith-mpi.so
CLEANFILES += kith-mpi.so
kith-mpi.so: sim/mpi_module.c include/kith/ranks.h
	$(AM_V_CCLD)$(CC) $(CFLAGS) $(GNU11) -fPIC -fvisibility=hidden \
	  -DPACKAGE_VERSION='"$(PACKAGE_VERSION)"' -I$(srcdir)/include \
	  $(MPI_CFLAGS) -shared $(AM_LDFLAGS) $(LDFLAGS) -o $@ \
	  $(srcdir)/sim/mpi_module.c $(MPI_LIBS)
endif
EXTRA_DIST += sim/mpi_module.c
