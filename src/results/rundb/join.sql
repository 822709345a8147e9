-- Databases of a cluster's peers become one of their run: kith/join.h. What
-- each says of itself is staged first, then told of all.

-- :stage
CREATE TEMP TABLE told(rank INTEGER, key TEXT, value);
CREATE TEMP TABLE facts(rank INTEGER, key TEXT, value);
CREATE TEMP TABLE ends(rank INTEGER, seed INTEGER, state TEXT{results.types});

-- :told.read
SELECT key, value FROM summary LIMIT 200
-- :told.write
INSERT INTO told VALUES(?, ?, ?)
-- :facts.read
SELECT key, value FROM run LIMIT 200
-- :facts.write
INSERT INTO facts VALUES(?, ?, ?)
-- :ends.read
SELECT seed, state{results} FROM runs WHERE run_id = 1
-- :ends.write
INSERT INTO ends VALUES(?, ?, ?{results.values})
-- :series.read
SELECT time_s{series} FROM series WHERE peer IS NOT NULL
-- :series.write
INSERT INTO series VALUES(1, ?, ?{series.values})
-- :kinds.read
SELECT name FROM mark_kinds LIMIT 200
-- :kinds.write
INSERT INTO mark_kinds(name) SELECT ?2 WHERE ?1 IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM mark_kinds WHERE name = ?2)
-- :marks.read
SELECT time_s, name, other, initiator, incarnation, counter, value, sum
FROM marks JOIN mark_kinds USING(kind)
-- :marks.write
INSERT INTO marks SELECT 1, ?1, ?2, kind, ?4, ?5, ?6, ?7, ?8, ?9
FROM mark_kinds WHERE name = ?3

-- :finish
-- Counts are sums, means are means of the peers, and an average of their models
-- was never at hand: accuracy and loss are the peers' mean.
INSERT INTO runs(run_id, cell, seed, state, target_loss, steps, bytes_mean,
  bytes_max, staleness_mean, staleness_max, utilisation, loss, accuracy,
  violations, wall_s)
SELECT 1, 1, min(seed), CASE
    WHEN sum(state = 'diverged') > 0 THEN 'diverged'
    WHEN sum(state = 'failed') > 0 THEN 'failed'
    WHEN sum(state = 'running') > 0 THEN 'running'
    WHEN sum(state = 'done') = count(*) THEN 'done'
    ELSE 'interrupted' END,
  max(target_loss), sum(steps), avg(bytes_mean), max(bytes_max),
  avg(staleness_mean), max(staleness_max), avg(utilisation), avg(loss),
  avg(accuracy), sum(violations), max(wall_s)
FROM ends;
INSERT INTO summary
SELECT 1, key, CASE
    WHEN key IN ('accuracy.worst', 'completed') THEN min(value + 0.0)
    WHEN key IN ('wall_s', 'bytes.per_peer_max', 'staleness.max', 'loss.worst',
      'channel.in_flight_max', 'speed.memory_bytes', 'speed.data_wait_s')
      THEN max(value + 0.0)
    WHEN key IN ('accuracy.mean', 'loss.mean', 'staleness.mean', 'utilisation',
      'channel.in_flight_mean', 'channel.idle_share', 'channel.passes',
      'speed.mfu', 'speed.exchange_overlap') THEN avg(value)
    WHEN key IN ('steps', 'samples', 'bytes.sent', 'channel.idle_s', 'faults',
      'violations', 'accuracy.peers', 'speed.samples_per_s', 'speed.tokens_per_s',
      'speed.flop_per_s') OR key LIKE 'exchanges.%' OR key LIKE 'cpu.%'
      THEN sum(value)
    WHEN count(DISTINCT value) = 1 AND count(value) = count(*) THEN min(value)
  END
FROM told GROUP BY key;
INSERT INTO run
SELECT 1, key, CASE WHEN count(DISTINCT value) = 1 OR key = 'experiment'
    OR key = 'started_utc' THEN min(value)
  ELSE substr(group_concat(DISTINCT value), 1, 200) END
FROM facts WHERE key NOT IN ('rank', 'incarnation') GROUP BY key;
INSERT INTO run SELECT 1, 'databases', count(*) || ' of ' ||
  (SELECT value FROM run WHERE key = 'peers') || ' peers' FROM ends;
INSERT INTO cells(cell, label) SELECT 1, value FROM run WHERE key = 'name';
