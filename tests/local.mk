# One name per line, sorted. A unit test is tests/unit/test_NAME.c and one line
# in UNIT; flags and libraries are shared.
LDADD = $(KITH_LIBS) $(CMOCKA_LIBS)

UNIT = \
  tests/unit/test_acid \
  tests/unit/test_admission \
  tests/unit/test_aead \
  tests/unit/test_aegis \
  tests/unit/test_aegis_wiped \
  tests/unit/test_archive \
  tests/unit/test_async_spread \
  tests/unit/test_overlap \
  tests/unit/test_backend \
  tests/unit/test_balance \
  tests/unit/test_baseline \
  tests/unit/test_bf16 \
  tests/unit/test_borrowing \
  tests/unit/test_buckets \
  tests/unit/test_buffers \
  tests/unit/test_central_exchange \
  tests/unit/test_central_identities \
  tests/unit/test_central_pipeline \
  tests/unit/test_central_stragglers \
  tests/unit/test_central_refused \
  tests/unit/test_certificate \
  tests/unit/test_channel_use \
  tests/unit/test_checks \
  tests/unit/test_churn \
  tests/unit/test_classes \
  tests/unit/test_compression_keys \
  tests/unit/test_compressor_quality \
  tests/unit/test_compressors \
  tests/unit/test_cpu_variants \
  tests/unit/test_cuda_combine \
  tests/unit/test_cuda_compressors \
  tests/unit/test_cuda_models \
  tests/unit/test_cuda_module \
  tests/unit/test_cuda_notice \
  tests/unit/test_cuda_ops \
  tests/unit/test_cuda_order \
  tests/unit/test_cuda_packed_pairs \
  tests/unit/test_cuda_packing \
  tests/unit/test_cuda_scores \
  tests/unit/test_cuda_steps \
  tests/unit/test_cuda_vectors \
  tests/unit/test_data \
  tests/unit/test_data_cache \
  tests/unit/test_data_shrinks \
  tests/unit/test_curve \
  tests/unit/test_derive \
  tests/unit/test_device_algorithms \
  tests/unit/test_experiment_hash \
  tests/unit/test_epidemic \
  tests/unit/test_estimate \
  tests/unit/test_experiment \
  tests/unit/test_fault_sides \
  tests/unit/test_faults \
  tests/unit/test_file \
  tests/unit/test_follow \
  tests/unit/test_formats \
  tests/unit/test_graph \
  tests/unit/test_gs_sgd \
  tests/unit/test_gs_sgd_costs \
  tests/unit/test_gs_sgd_learns \
  tests/unit/test_gs_sgd_message \
  tests/unit/test_gtop_k \
  tests/unit/test_gtop_k_learns \
  tests/unit/test_gtop_k_message \
  tests/unit/test_guard_clip \
  tests/unit/test_guard_rounds \
  tests/unit/test_guard_runs \
  tests/unit/test_guard_worker \
  tests/unit/test_lies \
  tests/unit/test_hand_over \
  tests/unit/test_hash \
  tests/unit/test_heap \
  tests/unit/test_hello \
  tests/unit/test_idx \
  tests/unit/test_journal \
  tests/unit/test_keys \
  tests/unit/test_keys_trust \
  tests/unit/test_known_runs \
  tests/unit/test_lab_place \
  tests/unit/test_lab_process \
  tests/unit/test_lab_rows \
  tests/unit/test_lab_speaker \
  tests/unit/test_lars_parts \
  tests/unit/test_lars_site \
  tests/unit/test_latencies \
  tests/unit/test_layer_schedule \
  tests/unit/test_layout \
  tests/unit/test_link_law \
  tests/unit/test_liveness \
  tests/unit/test_loader \
  tests/unit/test_log_limit \
  tests/unit/test_machine \
  tests/unit/test_manifest \
  tests/unit/test_max_min \
  tests/unit/test_member \
  tests/unit/test_model \
  tests/unit/test_modular \
  tests/unit/test_ms_top_k \
  tests/unit/test_network \
  tests/unit/test_node \
  tests/unit/test_node_asserts \
  tests/unit/test_node_buckets \
  tests/unit/test_node_charges \
  tests/unit/test_node_directed \
  tests/unit/test_node_given \
  tests/unit/test_node_leave \
  tests/unit/test_node_pause \
  tests/unit/test_node_turns \
  tests/unit/test_node_pull \
  tests/unit/test_node_round \
  tests/unit/test_noise \
  tests/unit/test_npy \
  tests/unit/test_npz \
  tests/unit/test_ops \
  tests/unit/test_ops_text \
  tests/unit/test_optimiser \
  tests/unit/test_packing \
  tests/unit/test_packing_modular \
  tests/unit/test_papers_costs \
  tests/unit/test_peak \
  tests/unit/test_peer \
  tests/unit/test_peer_file \
  tests/unit/test_piece_patience \
  tests/unit/test_pieces \
  tests/unit/test_plan \
  tests/unit/test_plan_batch \
  tests/unit/test_plan_memory \
  tests/unit/test_plan_simulated \
  tests/unit/test_pool \
  tests/unit/test_products \
  tests/unit/test_replicas \
  tests/unit/test_rng \
  tests/unit/test_rules \
  tests/unit/test_rules_outer \
  tests/unit/test_rules_rounds \
  tests/unit/test_running_sums \
  tests/unit/test_runs \
  tests/unit/test_safetensors \
  tests/unit/test_sample \
  tests/unit/test_save \
  tests/unit/test_outside \
  tests/unit/test_outside_device \
  tests/unit/test_saver \
  tests/unit/test_session \
  tests/unit/test_session_known \
  tests/unit/test_session_provider \
  tests/unit/test_session_refusals \
  tests/unit/test_session_spoiled \
  tests/unit/test_session_threads \
  tests/unit/test_shaped_line \
  tests/unit/test_shares \
  tests/unit/test_sim_conservation \
  tests/unit/test_recovery \
  tests/unit/test_sim_faults \
  tests/unit/test_sim_flows \
  tests/unit/test_sim_golden \
  tests/unit/test_sim_hosts \
  tests/unit/test_save_file \
  tests/unit/test_sim_memory \
  tests/unit/test_sim_network \
  tests/unit/test_sim_queue \
  tests/unit/test_sim_threads \
  tests/unit/test_sim_work_pool \
  tests/unit/test_simulate \
  tests/unit/test_shared_models \
  tests/unit/test_shared_vectors \
  tests/unit/test_sketch \
  tests/unit/test_sketch_contraction \
  tests/unit/test_sketch_recover \
  tests/unit/test_sketch_refused \
  tests/unit/test_sparse_loco \
  tests/unit/test_sparse_loco_rules \
  tests/unit/test_speed \
  tests/unit/test_split \
  tests/unit/test_statistics \
  tests/unit/test_store \
  tests/unit/test_strips \
  tests/unit/test_stragglers \
  tests/unit/test_suite \
  tests/unit/test_suspects \
  tests/unit/test_swap_cost \
  tests/unit/test_swarm_finds \
  tests/unit/test_swarm_healed \
  tests/unit/test_swarm_cycles \
  tests/unit/test_swarm_pairs \
  tests/unit/test_taxonomy_bias \
  tests/unit/test_sync_sgd \
  tests/unit/test_sync_sgd_buckets \
  tests/unit/test_taxonomy_choco \
  tests/unit/test_taxonomy_churn \
  tests/unit/test_taxonomy_clipped \
  tests/unit/test_taxonomy_consensus \
  tests/unit/test_taxonomy_equal \
  tests/unit/test_taxonomy_links \
  tests/unit/test_taxonomy_mass \
  tests/unit/test_taxonomy_noise \
  tests/unit/test_text \
  tests/unit/test_theory \
  tests/unit/test_tokenizer \
  tests/unit/test_top_k_2bit \
  tests/unit/test_torn_copies \
  tests/unit/test_top_list \
  tests/unit/test_topology \
  tests/unit/test_topology_rounds \
  tests/unit/test_transport \
  tests/unit/test_two_level \
  tests/unit/test_two_level_costs \
  tests/unit/test_two_level_message \
  tests/unit/test_two_level_runs \
  tests/unit/test_update_log \
  tests/unit/test_update_sets \
  tests/unit/test_update_sets_rules \
  tests/unit/test_virtual_time \
  tests/unit/test_names \
  tests/unit/test_weights \
  tests/unit/test_wire \
  tests/unit/test_worker_archive \
  tests/unit/test_worker \
  tests/unit/test_worker_adopt \
  tests/unit/test_worker_device \
  tests/unit/test_worker_train \
  tests/unit/test_wycheproof \
  tests/unit/test_zone_map \
  tests/unit/test_zones

PROPERTY = \
  tests/property/test_central_choices \
  tests/property/test_library_calls \
  tests/property/test_matrix \
  tests/property/test_member_fuzz \
  tests/property/test_node_chaos \
  tests/property/test_node_fuzz \
  tests/property/test_node_liars \
  tests/property/test_node_rounds \
  tests/property/test_sim_determinism \
  tests/property/test_sim_theory \
  tests/property/test_topologies

# A fence is a script that guards a rule of the house, with a canary.
FENCES = \
  tests/fences/check_format.sh \
  tests/fences/check_globals.sh \
  tests/fences/check_headers.sh \
  tests/fences/check_layers.sh \
  tests/fences/check_link.sh \
  tests/fences/check_measure.sh \
  tests/fences/check_names.sh \
  tests/fences/check_papers.sh \
  tests/fences/check_private.sh \
  tests/fences/check_registry.sh \
  tests/fences/check_sim_parts.sh \
  tests/fences/check_size.sh \
  tests/fences/check_symbols.sh \
  tests/fences/check_words.sh

# Whole commands, from outside.
INTEGRATION = \
  tests/integration/test_central_presets.sh \
  tests/integration/test_channel_use.sh \
  tests/integration/test_churn.sh \
  tests/integration/test_classes.sh \
  tests/integration/test_zones.sh \
  tests/integration/test_cli_completion.sh \
  tests/integration/test_lab_ddp.sh \
  tests/integration/test_latencies.sh \
  tests/integration/test_lab_program.sh \
  tests/integration/test_lab_program_guard.sh \
  tests/integration/test_lab_program_record.sh \
  tests/integration/test_python.sh \
  tests/integration/test_python_mistakes.sh \
  tests/integration/test_python_tree.sh \
  tests/integration/test_libkith.sh \
  tests/integration/test_wheel.sh \
  tests/integration/test_python_fork.sh \
  tests/integration/test_cli_names.sh \
  tests/integration/test_python_saves.sh \
  tests/integration/test_python_device.sh \
  tests/integration/test_cli_init.sh \
  tests/integration/test_cli_json.sh \
  tests/integration/test_cli_links.sh \
  tests/integration/test_cli_device.sh \
  tests/integration/test_cli_bf16.sh \
  tests/integration/test_cli_balance.sh \
  tests/integration/test_cli_exchanges.sh \
  tests/integration/test_cli_manual.sh \
  tests/integration/test_cli_memory.sh \
  tests/integration/test_cli_model.sh \
  tests/integration/test_cli_plan.sh \
  tests/integration/test_plan_search.sh \
  tests/integration/test_cli_progress.sh \
  tests/integration/test_cli_refuses.sh \
  tests/integration/test_cli_runs.sh \
  tests/integration/test_cli_speed.sh \
  tests/integration/test_cli_stops.sh \
  tests/integration/test_cli_summary.sh \
  tests/integration/test_cli_topology.sh \
  tests/integration/test_cli_usage.sh \
  tests/integration/test_curves.sh \
  tests/integration/test_docs_algorithms.sh \
  tests/integration/test_docs_costs.sh \
  tests/integration/test_dump.sh \
  tests/integration/test_failed_counts.sh \
  tests/integration/test_gpu_run.sh \
  tests/integration/test_hostile.sh \
  tests/integration/test_lab_affinity.sh \
  tests/integration/test_lab_ends.sh \
  tests/integration/test_lab_faults.sh \
  tests/integration/test_lab_full_disk.sh \
  tests/integration/test_lab_gs_sgd.sh \
  tests/integration/test_lab_guard.sh \
  tests/integration/test_lab_huge.sh \
  tests/integration/test_lab_learns.sh \
  tests/integration/test_lab_pieces.sh \
  tests/integration/test_lab_refuses.sh \
  tests/integration/test_lab_replay.sh \
  tests/integration/test_lab_resumes.sh \
  tests/integration/test_lab_shared.sh \
  tests/integration/test_lab_sync_buckets.sh \
  tests/integration/test_lab_sync_sgd.sh \
  tests/integration/test_lab_lars_site.sh \
  tests/integration/test_lab_two_level.sh \
  tests/integration/test_lab_taxonomy.sh \
  tests/integration/test_lab_wires.sh \
  tests/integration/test_links_lossy.sh \
  tests/integration/test_netns_peers.sh \
  tests/integration/test_figure.sh \
  tests/integration/test_follow.sh \
  tests/integration/test_old_files.sh \
  tests/integration/test_paper_figure.sh \
  tests/integration/test_parity.sh \
  tests/integration/test_peer_alone.sh \
  tests/integration/test_peer_report.sh \
  tests/integration/test_peer_stops.sh \
  tests/integration/test_peer_suites.sh \
  tests/integration/test_oracle.sh \
  tests/integration/test_report.sh \
  tests/integration/test_report_map.sh \
  tests/integration/test_report_page.sh \
  tests/integration/test_report_paired.sh \
  tests/integration/test_resume.sh \
  tests/integration/test_sim_ranks.sh \
  tests/integration/test_sim_resume.sh \
  tests/integration/test_sim_shards.sh \
  tests/integration/test_sim_absent.sh \
  tests/integration/test_sim_rows.sh \
  tests/integration/test_sim_timeline.sh \
  tests/integration/test_sim_aside.sh \
  tests/integration/test_sim_windows.sh \
  tests/integration/test_sim_sweep.sh \
  tests/integration/test_source_digest.sh \
  tests/integration/test_simulate.sh \
  tests/integration/test_swarm.sh \
  tests/integration/test_swarm_lab.sh

# Slow tests, scripts only; programs that they run go to LONG_BUILDS.
LONG = \
  tests/long/accept_1.sh \
  tests/long/accept_2.sh \
  tests/long/accept_6.sh \
  tests/long/accept_aegis.sh \
  tests/long/accept_choco.sh \
  tests/long/accept_choosing.sh \
  tests/long/accept_churn.sh \
  tests/long/accept_fidelity.sh \
  tests/long/accept_flows.sh \
  tests/long/accept_follow.sh \
  tests/long/accept_freeze.sh \
  tests/long/accept_heal.sh \
  tests/long/accept_hosts.sh \
  tests/long/accept_lab.sh \
  tests/long/accept_learning.sh \
  tests/long/accept_machines.sh \
  tests/long/accept_messages.sh \
  tests/long/accept_mixing.sh \
  tests/long/accept_overlap.sh \
  tests/long/accept_page.sh \
  tests/long/accept_parity.sh \
  tests/long/accept_plan.sh \
  tests/long/accept_plan_search.sh \
  tests/long/accept_program.sh \
  tests/long/accept_quality.sh \
  tests/long/accept_ranks.sh \
  tests/long/accept_replay.sh \
  tests/long/accept_resume.sh \
  tests/long/accept_same.sh \
  tests/long/accept_scale.sh \
  tests/long/accept_simulate.sh \
  tests/long/accept_slow_link.sh \
  tests/long/accept_sparse.sh \
  tests/long/accept_swarm_lab.sh \
  tests/long/accept_taxonomy.sh \
  tests/long/accept_unpaced.sh \
  tests/long/accept_wheel.sh \
  tests/long/accept_wires.sh \
  tests/long/accept_wires_live.sh \
  tests/long/accept_worlds.sh \
  tests/long/byzantine.sh \
  tests/long/check_cuda_code.sh \
  tests/long/check_deploy.sh \
  tests/long/check_matrix.sh \
  tests/long/check_slurm.sh \
  tests/long/coverage.sh \
  tests/long/fuzz.sh \
  tests/long/hostile.sh \
  tests/long/message_cost.sh \
  tests/long/mutants.sh \
  tests/long/papers.sh \
  tests/long/soak.sh \
  tests/long/theory_table.sh
LONG_BUILDS = $(PARITY) tests/long/flow_times tests/long/message_cost
tests_long_flow_times_SOURCES = tests/long/flow_times.c
tests_long_message_cost_SOURCES = tests/long/message_cost.c \
  bench/tensor_ways.h bench/plain.h
EXTRA_DIST += tests/hostile/abuse.py tests/hostile/attacks.py \
  tests/hostile/channel.py tests/hostile/cluster.py \
  tests/hostile/exchanges.py tests/hostile/hostile.py \
  tests/hostile/member.py tests/hostile/messages.py tests/hostile/rounds.py
EXTRA_DIST += tests/oracle/oracle.py tests/oracle/averaging.py \
  tests/oracle/outer.py tests/oracle/push_sum.py tests/oracle/tracking.py
EXTRA_DIST += tests/integration/emulated.py \
  tests/integration/mistakes.py \
  tests/integration/simulate.py tests/integration/tree.py tests/long/accept_simulate.py \
  tests/long/accept_program.py tests/long/engine_twin.py \
  tests/long/program_cost.py tests/long/program_mlp.py tests/long/torch.sh
EXTRA_DIST += tests/integration/cluster.sh tests/integration/lab.sh tests/integration/ranks.py \
  tests/integration/aside.py tests/integration/threads.sh \
  tests/integration/windows.py \
  tests/integration/ranks.sh tests/integration/resume.py \
  tests/integration/test_cli_json.py \
  tests/integration/lab_program.py \
  tests/integration/test_cli_progress.py \
  tests/long/accept.py tests/long/accept_fidelity.py \
  tests/long/fidelity.md.in tests/long/fidelity_program.py \
  tests/long/accept_1.py tests/long/accept_2.py tests/long/accept_6.py \
  tests/long/accept_hosts.py tests/long/accept_mixing.py tests/long/accept_page.py \
  tests/long/accept_plan.py tests/long/accept_plan_search.py tests/long/accept_worlds.py \
  tests/long/accept_flows.py tests/long/flow_times_simgrid.cpp \
  tests/long/accept_messages.py tests/long/messages_simgrid.cpp \
  tests/long/papers.py tests/long/soak.py \
  tests/long/accept_choco.py tests/long/theory_table.py \
  tests/long/accept_quality.py tests/long/accept_same.py \
  tests/long/accept_same_draw.py tests/long/accept_same_planted.py \
  tests/long/accept_taxonomy.py \
  tests/long/accept_learning.py tests/long/accept_choosing.py \
  tests/long/accept_overlap.py \
  tests/long/accept_slow_link.py tests/long/accept_sparse.py \
  tests/long/accept_unpaced.py \
  tests/long/accept_wires.py tests/long/accept_wires_live.py \
  tests/long/mutants.py tests/long/mutants_equivalent.txt \
  tests/long/mutants_find.py \
  tests/long/accept_heal.py tests/long/byzantine.py \
  tests/long/byzantine_digits.csv tests/long/byzantine_fashion.csv \
  tests/integration/lab_replay.py tests/integration/report_map.py \
  tests/integration/report_page.py tests/integration/lab_taxonomy.py \
  tests/integration/browser.py tests/integration/follow.py \
  docs/make_algorithms.py \
  docs/make_manual.py docs/make_papers_costs.py docs/papers_costs.csv \
  docs/papers_costs.md docs/papers_costs.svg
EXTRA_PROGRAMS += $(LONG_BUILDS)

check_PROGRAMS += $(UNIT) $(PROPERTY)
# Not a test itself: test_parity.sh runs it and holds PyTorch beside it.
PARITY = tests/parity/dump
check_DATA += $(PARITY)
dist_check_SCRIPTS += $(FENCES) $(INTEGRATION)

EXTRA_DIST += tests/integration/libkith.abi
EXTRA_DIST += tests/support/dataset.h tests/support/heals.h tests/support/story.h
# A system that has no memory files, or cannot seal them.
tests_unit_test_shared_vectors_LDFLAGS = $(AM_LDFLAGS) \
  -Wl,--wrap=memfd_create,--wrap=fcntl
tests_unit_test_store_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=sqlite3_step \
  -Wl,--wrap=sqlite3_exec,--wrap=sqlite3_busy_timeout
tests_unit_test_swarm_finds_LDFLAGS = $(AM_LDFLAGS) \
  -Wl,--wrap=kith_worker_judge_step,--wrap=kith_worker_judge_merge \
  -Wl,--wrap=kith_worker_is_far,--wrap=kith_node_charge \
  -Wl,--wrap=kith_exchange_overslept,--wrap=kith_exchange_tell \
  -Wl,--wrap=kith_round_hear,--wrap=kith_link_arrival
tests_unit_test_rules_rounds_SOURCES = tests/unit/test_rules_rounds.c \
  tests/support/trial.c tests/support/trial.h
tests_unit_test_acid_SOURCES = tests/unit/test_acid.c \
  tests/support/trial.c tests/support/trial.h
tests_unit_test_rules_outer_SOURCES = tests/unit/test_rules_outer.c \
  tests/support/trial.c tests/support/trial.h
tests_unit_test_rules_SOURCES = tests/unit/test_rules.c \
  tests/support/trial.c tests/support/trial.h
tests_unit_test_taxonomy_bias_SOURCES = tests/unit/test_taxonomy_bias.c \
  tests/support/trial.c tests/support/trial.h
PROBE = tests/support/probe.c tests/support/probe.h
ROUND_COSTS = tests/support/round_costs.c tests/support/round_costs.h
tests_property_test_matrix_SOURCES = tests/property/test_matrix.c $(PROBE)
tests_property_test_sim_theory_SOURCES = tests/property/test_sim_theory.c \
  $(PROBE)
tests_unit_test_taxonomy_choco_SOURCES = tests/unit/test_taxonomy_choco.c \
  $(PROBE)
BY_HAND = tests/support/sites.c tests/support/sites.h
tests_unit_test_two_level_SOURCES = tests/unit/test_two_level.c $(BY_HAND) $(PROBE)
tests_unit_test_papers_costs_SOURCES = tests/unit/test_papers_costs.c $(ROUND_COSTS)
tests_unit_test_two_level_costs_SOURCES = tests/unit/test_two_level_costs.c \
  $(ROUND_COSTS) $(PROBE)
tests_unit_test_lars_site_SOURCES = tests/unit/test_lars_site.c $(PROBE)
tests_unit_test_two_level_runs_SOURCES = tests/unit/test_two_level_runs.c $(PROBE)
tests_unit_test_two_level_message_SOURCES = \
  tests/unit/test_two_level_message.c $(BY_HAND)
tests_unit_test_sync_sgd_SOURCES = tests/unit/test_sync_sgd.c $(PROBE)
tests_unit_test_sync_sgd_buckets_SOURCES = tests/unit/test_sync_sgd_buckets.c \
  $(PROBE)
tests_unit_test_gs_sgd_SOURCES = tests/unit/test_gs_sgd.c $(PROBE)
tests_unit_test_gs_sgd_costs_SOURCES = tests/unit/test_gs_sgd_costs.c $(ROUND_COSTS) \
  $(PROBE)
tests_unit_test_gs_sgd_learns_SOURCES = tests/unit/test_gs_sgd_learns.c $(PROBE)
tests_unit_test_gs_sgd_message_SOURCES = tests/unit/test_gs_sgd_message.c \
  $(PROBE)
tests_unit_test_sparse_loco_SOURCES = tests/unit/test_sparse_loco.c $(PROBE)
tests_unit_test_sparse_loco_rules_SOURCES = \
  tests/unit/test_sparse_loco_rules.c $(PROBE)
tests_unit_test_update_sets_rules_SOURCES = \
  tests/unit/test_update_sets_rules.c $(PROBE)
tests_unit_test_update_sets_SOURCES = tests/unit/test_update_sets.c $(PROBE)
tests_unit_test_gtop_k_SOURCES = tests/unit/test_gtop_k.c $(PROBE)
tests_unit_test_gtop_k_learns_SOURCES = tests/unit/test_gtop_k_learns.c $(PROBE)
tests_unit_test_gtop_k_message_SOURCES = tests/unit/test_gtop_k_message.c $(PROBE)
tests_unit_test_guard_rounds_SOURCES = tests/unit/test_guard_rounds.c \
  $(SIMULATE)
tests_unit_test_guard_runs_SOURCES = tests/unit/test_guard_runs.c $(PROBE)
tests_unit_test_lies_SOURCES = tests/unit/test_lies.c $(PROBE)
tests_unit_test_taxonomy_churn_SOURCES = tests/unit/test_taxonomy_churn.c \
  $(SIMULATE)
tests_unit_test_taxonomy_consensus_SOURCES = \
  tests/unit/test_taxonomy_consensus.c $(PROBE)
tests_unit_test_taxonomy_clipped_SOURCES = \
  tests/unit/test_taxonomy_clipped.c $(PROBE)
tests_unit_test_taxonomy_equal_SOURCES = tests/unit/test_taxonomy_equal.c \
  $(PROBE)
tests_unit_test_taxonomy_links_SOURCES = tests/unit/test_taxonomy_links.c \
  $(SIMULATE)
tests_unit_test_taxonomy_mass_SOURCES = tests/unit/test_taxonomy_mass.c \
  tests/support/node_network.c tests/support/node_network.h
tests_unit_test_taxonomy_noise_SOURCES = tests/unit/test_taxonomy_noise.c \
  $(PROBE)
# The tests' own network of nodes, without sockets or a simulator.
tests_unit_test_theory_SOURCES = tests/unit/test_theory.c \
  tests/support/node_network.c tests/support/node_network.h
EXTRA_DIST += tests/support/graph.h
tests_property_test_node_rounds_SOURCES = tests/property/test_node_rounds.c \
  tests/support/node_network.c tests/support/node_network.h
tests_property_test_node_liars_SOURCES = tests/property/test_node_liars.c \
  tests/support/node_network.c tests/support/node_network.h
tests_property_test_node_chaos_SOURCES = tests/property/test_node_chaos.c \
  tests/support/node_network.c tests/support/node_network.h
EXTRA_DIST += tests/unit/compressor_cases.h tests/unit/op_pairs.h \
  tests/unit/sketch_cases.h \
  tests/unit/experiment_base.h tests/unit/model_cases.h \
  tests/unit/worker_fixture.h tests/unit/worker_run.h
tests_unit_test_cuda_combine_SOURCES = tests/unit/test_cuda_combine.c \
  tests/unit/cuda_cases.c tests/unit/cuda_cases.h
tests_unit_test_cuda_compressors_SOURCES = tests/unit/test_cuda_compressors.c \
  tests/unit/cuda_cases.c tests/unit/cuda_cases.h
tests_unit_test_cuda_models_SOURCES = tests/unit/test_cuda_models.c \
  tests/unit/cuda_cases.c tests/unit/cuda_cases.h
tests_unit_test_cuda_module_SOURCES = tests/unit/test_cuda_module.c \
  tests/unit/cuda_cases.c tests/unit/cuda_cases.h
tests_unit_test_cuda_notice_SOURCES = tests/unit/test_cuda_notice.c \
  tests/unit/cuda_cases.c tests/unit/cuda_cases.h
tests_unit_test_cuda_ops_SOURCES = tests/unit/test_cuda_ops.c \
  tests/unit/cuda_cases.c tests/unit/cuda_cases.h \
  tests/unit/ops_cases.c tests/unit/ops_cases.h
tests_unit_test_device_algorithms_SOURCES = \
  tests/unit/test_device_algorithms.c tests/unit/cuda_cases.c \
  tests/unit/cuda_cases.h
tests_unit_test_cuda_order_SOURCES = tests/unit/test_cuda_order.c \
  tests/unit/cuda_cases.c tests/unit/cuda_cases.h
tests_unit_test_cuda_packed_pairs_SOURCES = tests/unit/test_cuda_packed_pairs.c \
  tests/unit/cuda_cases.c tests/unit/cuda_cases.h
tests_unit_test_cuda_packing_SOURCES = tests/unit/test_cuda_packing.c \
  tests/unit/cuda_cases.c tests/unit/cuda_cases.h
tests_unit_test_cuda_scores_SOURCES = tests/unit/test_cuda_scores.c \
  tests/unit/cuda_cases.c tests/unit/cuda_cases.h
tests_unit_test_cuda_steps_SOURCES = tests/unit/test_cuda_steps.c \
  tests/unit/cuda_cases.c tests/unit/cuda_cases.h
tests_unit_test_cuda_vectors_SOURCES = tests/unit/test_cuda_vectors.c \
  tests/unit/cuda_cases.c tests/unit/cuda_cases.h
tests_unit_test_outside_device_SOURCES = \
  tests/unit/test_outside_device.c tests/unit/cuda_cases.c \
  tests/unit/cuda_cases.h
tests_unit_test_worker_device_SOURCES = tests/unit/test_worker_device.c \
  tests/unit/cuda_cases.c tests/unit/cuda_cases.h
tests_unit_test_ops_SOURCES = tests/unit/test_ops.c tests/unit/ops_cases.c \
  tests/unit/ops_cases.h

# Two sessions joined by memory.
SESSIONS = tests/support/sessions.c tests/support/sessions.h
tests_unit_test_aegis_SOURCES = tests/unit/test_aegis.c \
  tests/support/aegis_plain.c tests/support/aegis_plain.h \
  tests/support/vectors.h $(SESSIONS)
tests_unit_test_aegis_wiped_SOURCES = tests/unit/test_aegis_wiped.c \
  tests/support/aegis_plain.c tests/support/aegis_plain.h
tests_unit_test_certificate_SOURCES = tests/unit/test_certificate.c $(SESSIONS)
tests_unit_test_member_SOURCES = tests/unit/test_member.c $(SESSIONS)
HOST_PAIR = tests/support/host_pair.c tests/support/host_pair.h $(SESSIONS)
tests_unit_test_hand_over_SOURCES = tests/unit/test_hand_over.c $(HOST_PAIR)
tests_unit_test_shared_models_SOURCES = \
  tests/unit/test_shared_models.c $(HOST_PAIR)
tests_property_test_member_fuzz_SOURCES = tests/property/test_member_fuzz.c \
  tests/fuzz/fuzz_member.c $(VICTIM)
tests_unit_test_hello_SOURCES = tests/unit/test_hello.c $(SESSIONS)
KEY_FILES = tests/unit/key_files.h $(SESSIONS)
tests_unit_test_keys_SOURCES = tests/unit/test_keys.c $(KEY_FILES)
tests_unit_test_keys_trust_SOURCES = tests/unit/test_keys_trust.c $(KEY_FILES)
tests_unit_test_suite_SOURCES = tests/unit/test_suite.c $(SESSIONS)
tests_unit_test_wycheproof_SOURCES = tests/unit/test_wycheproof.c \
  tests/support/vectors.h
tests_unit_test_session_SOURCES = tests/unit/test_session.c $(SESSIONS)
tests_unit_test_session_known_SOURCES = tests/unit/test_session_known.c \
  $(SESSIONS)
tests_unit_test_session_provider_SOURCES = \
  tests/unit/test_session_provider.c $(SESSIONS)
tests_unit_test_session_refusals_SOURCES = \
  tests/unit/test_session_refusals.c tests/support/refusals.h $(SESSIONS)
tests_unit_test_session_threads_SOURCES = \
  tests/unit/test_session_threads.c $(SESSIONS)
tests_unit_test_session_spoiled_SOURCES = \
  tests/unit/test_session_spoiled.c tests/support/refusals.h $(SESSIONS)
EXTRA_DIST += tests/vectors/bundled.json tests/vectors/make_vectors.py \
  tests/vectors/tokenizer/cases.json tests/vectors/tokenizer/make.py \
  tests/vectors/tokenizer/tokenizer.json

# Real peers, one forked process each.
PEERS = tests/support/peers.c tests/support/peers.h
PEER_TESTS = \
  tests/integration/test_library_saves \
  tests/integration/test_peer_caller \
  tests/integration/test_peer_device \
  tests/integration/test_peer_doctor \
  tests/integration/test_peer_faults \
  tests/integration/test_peer_flood \
  tests/integration/test_peer_guest \
  tests/integration/test_peer_keys \
  tests/integration/test_peer_pair \
  tests/integration/test_peer_pieces \
  tests/integration/test_peer_refused \
  tests/integration/test_peer_sent \
  tests/integration/test_peer_sessions
check_PROGRAMS += $(PEER_TESTS)
LIBRARY_FILES = tests/support/library_files.c tests/support/library_files.h
tests_property_test_library_calls_SOURCES = \
  tests/property/test_library_calls.c $(LIBRARY_FILES)
tests_integration_test_library_saves_SOURCES = \
  tests/integration/test_library_saves.c $(LIBRARY_FILES)
tests_integration_test_library_saves_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=fsync
tests_integration_test_peer_caller_SOURCES = \
  tests/integration/test_peer_caller.c $(PEERS)
tests_integration_test_peer_device_SOURCES = \
  tests/integration/test_peer_device.c tests/unit/cuda_cases.c \
  tests/unit/cuda_cases.h $(PEERS)
tests_integration_test_peer_doctor_SOURCES = \
  tests/integration/test_peer_doctor.c $(PEERS)
tests_integration_test_peer_faults_SOURCES = \
  tests/integration/test_peer_faults.c $(PEERS)
tests_integration_test_peer_pair_SOURCES = \
  tests/integration/test_peer_pair.c $(PEERS)
VISIT = $(PEERS) tests/support/visit.c tests/support/visit.h
tests_integration_test_peer_flood_SOURCES = \
  tests/integration/test_peer_flood.c $(VISIT) tests/support/flood.c \
  tests/support/flood.h
tests_integration_test_peer_guest_SOURCES = \
  tests/integration/test_peer_guest.c $(VISIT)
tests_integration_test_peer_keys_SOURCES = \
  tests/integration/test_peer_keys.c $(VISIT)
tests_integration_test_peer_pieces_SOURCES = \
  tests/integration/test_peer_pieces.c $(VISIT)
tests_integration_test_peer_refused_SOURCES = \
  tests/integration/test_peer_refused.c $(VISIT)
tests_integration_test_peer_sent_SOURCES = \
  tests/integration/test_peer_sent.c $(PEERS)
tests_integration_test_peer_sessions_SOURCES = \
  tests/integration/test_peer_sessions.c $(VISIT)

# Every object of base to sim, and no libuv: check_link.sh looks at it.
check_PROGRAMS += tests/link/sim_only
tests_link_sim_only_LDADD = $(WHOLE_BEGIN) $(SIM_ARCHIVES) $(WHOLE_END) \
  $(SIM_EXTERNAL)

# Central baselines: runs with their models.
CENTRAL = tests/support/central_run.c tests/support/central_run.h
tests_unit_test_central_exchange_SOURCES = \
  tests/unit/test_central_exchange.c $(CENTRAL)
tests_unit_test_central_identities_SOURCES = \
  tests/unit/test_central_identities.c $(CENTRAL)
tests_unit_test_central_pipeline_SOURCES = \
  tests/unit/test_central_pipeline.c $(CENTRAL)
tests_unit_test_central_stragglers_SOURCES = \
  tests/unit/test_central_stragglers.c $(CENTRAL)

# Simulations from a few lines of YAML.
SIMULATE = tests/support/simulate.c tests/support/simulate.h
TRACED = $(SIMULATE) tests/support/traced.c tests/support/traced.h
tests_property_test_sim_determinism_SOURCES = \
  tests/property/test_sim_determinism.c $(SIMULATE)
tests_unit_test_stragglers_SOURCES = tests/unit/test_stragglers.c $(SIMULATE)
tests_unit_test_simulate_SOURCES = tests/unit/test_simulate.c $(SIMULATE)
tests_unit_test_sim_conservation_SOURCES = \
  tests/unit/test_sim_conservation.c $(SIMULATE)
tests_unit_test_overlap_SOURCES = \
  tests/unit/test_overlap.c $(SIMULATE)
tests_unit_test_recovery_SOURCES = tests/unit/test_recovery.c $(SIMULATE)
tests_unit_test_shares_SOURCES = tests/unit/test_shares.c $(SIMULATE)
tests_unit_test_sim_faults_SOURCES = tests/unit/test_sim_faults.c $(SIMULATE)
tests_unit_test_churn_SOURCES = tests/unit/test_churn.c $(SIMULATE)
tests_unit_test_classes_SOURCES = tests/unit/test_classes.c $(TRACED)
tests_unit_test_zones_SOURCES = tests/unit/test_zones.c $(TRACED)
tests_unit_test_latencies_SOURCES = tests/unit/test_latencies.c $(TRACED)
tests_unit_test_sim_flows_SOURCES = tests/unit/test_sim_flows.c $(TRACED)
tests_unit_test_sim_hosts_SOURCES = tests/unit/test_sim_hosts.c $(TRACED)
tests_unit_test_sim_threads_SOURCES = tests/unit/test_sim_threads.c
tests_unit_test_sim_threads_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=pthread_create
tests_unit_test_sim_memory_SOURCES = tests/unit/test_sim_memory.c $(SIMULATE)
# What it opens is counted.
tests_unit_test_plan_memory_SOURCES = tests/unit/test_plan_memory.c \
  src/cli/plan_memory.c
tests_unit_test_plan_memory_LDFLAGS = $(AM_LDFLAGS) \
  -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc \
  -Wl,--wrap=free,--wrap=mmap,--wrap=munmap
tests_unit_test_plan_simulated_SOURCES = \
  tests/unit/test_plan_simulated.c $(SIMULATE)
tests_unit_test_swap_cost_SOURCES = tests/unit/test_swap_cost.c \
  src/cli/swap_cost.c
tests_unit_test_sim_network_SOURCES = tests/unit/test_sim_network.c $(TRACED)
EXTRA_DIST += tests/golden/known.txt \
  tests/golden/old/recording-50ce217.db tests/golden/old/recording-v4.db \
  tests/golden/old/run-50ce217.db \
  tests/golden/round.trace tests/golden/round.yaml \
  tests/golden/swap.trace tests/golden/swap.yaml \
  tests/golden/torn.trace tests/golden/torn.yaml \
  tests/golden/old/old.yaml
