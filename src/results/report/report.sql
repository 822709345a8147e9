-- What a report asks of a run database. Every table of the page is bounded.

-- :runs
-- All runs, as the table runs has them; ?1 is another target loss, or NULL.
SELECT *, CASE WHEN ?1 IS NULL THEN time_to_target_s ELSE (
    SELECT min(time_s) FROM series s
    WHERE s.run_id = r.run_id AND s.peer IS NULL AND s.loss <= ?1)
  END AS time_to_target_s
FROM runs r ORDER BY cell, run_id

-- :run.1
-- The one run of schema 1 or 2, which its summary tells of.
WITH told(key, value) AS (SELECT key, value FROM summary),
  facts(name, value) AS (SELECT key, value FROM run)
SELECT 1 AS run_id, 1 AS cell,
  (SELECT value FROM facts WHERE name = 'seed') AS seed,
  CASE (SELECT value FROM told WHERE key = 'completed')
    WHEN '1' THEN 'done' ELSE 'interrupted' END AS state,
  NULL AS problem,
  (SELECT value FROM told WHERE key = 'violations') AS violations,
  (SELECT value FROM told WHERE key = 'accuracy.averaged') AS accuracy,
  (SELECT value FROM told WHERE key = 'loss.averaged') AS loss,
  (SELECT min(time_s) FROM series WHERE peer IS NULL AND loss <= ?1)
    AS time_to_target_s,
  (SELECT value FROM told WHERE key = 'steps') AS steps,
  (SELECT value FROM told WHERE key = 'bytes.sent') * 1.0 /
    (SELECT value FROM facts WHERE name = 'peers') AS bytes_mean,
  (SELECT value FROM told WHERE key = 'bytes.per_peer_max') AS bytes_max,
  (SELECT value FROM told WHERE key = 'consensus_distance')
    AS consensus_distance

-- :cells
SELECT cell, label, refused FROM cells ORDER BY cell

-- :cells.1
-- A database of one run is a cell of its own, named by experiment and world; of
-- a cluster by its peer, or by how many of its peers were joined.
SELECT 1, (SELECT value FROM run WHERE key = 'name') || ' ' ||
  (SELECT value FROM run WHERE key = 'world') ||
  ifnull(' ' || (SELECT value FROM run WHERE key = 'rank'), '') ||
  ifnull(', ' || (SELECT value FROM run WHERE key = 'databases'), ''), NULL

-- :settings
SELECT cell, key, value FROM settings ORDER BY cell, key

-- :table
-- How many ordinary tables have this name? A view could hold any query.
SELECT count(*) FROM sqlite_schema
WHERE type = 'table' AND name = ?1 AND sql NOT LIKE 'CREATE VIRTUAL%'

-- :plans
SELECT count(*) FROM run WHERE run_id = 0 AND key = 'seeds'

-- :facts
SELECT key, value FROM run LIMIT 200

-- :summary
SELECT key, value FROM summary LIMIT 200

-- :faults
SELECT happened_s AS time_s, fault AS kind, peer, other, factor
FROM faults ORDER BY happened_s LIMIT 1000

-- :verdicts
SELECT assertion AS text, held, value, at_s AS time_s FROM verdicts LIMIT 100

-- :outcomes
SELECT name AS kind, count(*) AS count, sum(sum) AS sum
FROM marks JOIN mark_kinds USING(kind) GROUP BY kind ORDER BY kind LIMIT 100

-- :identities
-- What the others made of each member's models: a guard's distances, what was
-- refused unseen by it, and exchanges that held their place until given up.
SELECT other AS peer, count(*) FILTER (WHERE name = 'clipped') AS clipped,
  avg(value) FILTER (WHERE name = 'clipped') / 1000 AS let_in,
  avg(sum) FILTER (WHERE name = 'clipped') AS clipped_from,
  count(*) FILTER (WHERE name = 'rejected') AS rejected,
  max(sum) FILTER (WHERE name = 'rejected') AS rejected_at,
  count(*) FILTER (WHERE name IN ('gated', 'bad')) AS refused,
  count(*) FILTER (WHERE name IN ('failed', 'torn')) AS held
FROM marks JOIN mark_kinds USING(kind)
WHERE other IS NOT NULL AND name IN ('clipped', 'rejected', 'gated', 'bad',
  'failed', 'torn')
GROUP BY other ORDER BY other LIMIT 500

-- :figure
-- Of one run the averaged model's rows, in the order of time.
SELECT time_s{series} FROM series WHERE run_id = ?1 AND peer IS NULL
ORDER BY time_s, step LIMIT ?2

-- :events
-- Trace events worth a line each; the others are counted.
SELECT time_s, peer, name AS kind, other, initiator, incarnation, counter, sum
FROM marks JOIN mark_kinds USING(kind)
WHERE name IN ('undone', 'torn', 'adopted', 'bad', 'gated', 'rejected', 'nonfinite',
  'finished')
ORDER BY time_s LIMIT 500

-- :events.count
SELECT count(*) FROM marks JOIN mark_kinds USING(kind)
WHERE name IN ('undone', 'torn', 'adopted', 'bad', 'gated', 'rejected', 'nonfinite',
  'finished')

-- :last
SELECT peer, step, samples, loss, accuracy, attempts, done, failed, refused,
  skipped, torn, bytes_sent, bytes_received, waiting_s, max(time_s) AS time_s
FROM series WHERE peer IS NOT NULL GROUP BY peer ORDER BY peer LIMIT 500

-- :speed
-- Rates of each peer over all its rows, as the summary has them: samples over
-- the time that they took. A row that says more samples weighs more, one without
-- any nothing.
WITH columns AS (SELECT peer, time_s{series} FROM series),
  counted AS (
    SELECT *, max(0, samples - lag(samples, 1, 0)
      OVER (PARTITION BY peer ORDER BY time_s)) AS count
    FROM columns WHERE memory_bytes IS NOT NULL)
SELECT peer,
  sum(count) FILTER (WHERE samples_per_s > 0) /
    sum(count / nullif(samples_per_s, 0)) AS samples_per_s,
  sum(count) FILTER (WHERE tokens_per_s > 0) /
    sum(count / nullif(tokens_per_s, 0)) AS tokens_per_s,
  sum(count) FILTER (WHERE flop_per_s > 0) /
    sum(count / nullif(flop_per_s, 0)) AS flop_per_s,
  sum(count) FILTER (WHERE mfu > 0) / sum(count / nullif(mfu, 0)) AS mfu,
  max(data_wait_s) AS data_wait_s,
  last.exchange_overlap AS exchange_overlap,
  max(memory_bytes) AS memory_bytes
FROM counted JOIN (SELECT peer, exchange_overlap, max(time_s) FROM counted
  GROUP BY peer) AS last USING(peer)
GROUP BY peer ORDER BY peer LIMIT 500

-- :peers.count
SELECT count(DISTINCT peer) FROM series

-- :series.count
-- Of the first ?1 peers by rank, and of the averaged model.
SELECT count(*) FROM series WHERE peer IS NULL OR peer IN (
  SELECT DISTINCT peer FROM series WHERE peer IS NOT NULL ORDER BY peer LIMIT ?1)

-- :series
-- The same rows, thinned: of each peer every ?2th, the first and the last, ?3 in
-- all.
WITH numbered AS (
  SELECT *, row_number() OVER (PARTITION BY peer ORDER BY time_s, step)
      AS place, count(*) OVER (PARTITION BY peer) AS count_
  FROM series WHERE peer IS NULL OR peer IN (
    SELECT DISTINCT peer FROM series WHERE peer IS NOT NULL ORDER BY peer
    LIMIT ?1))
SELECT ifnull(peer, -1) AS peer, time_s, step, samples{series.charts}
FROM numbered WHERE place % ?2 = 0 OR place = 1 OR place = count_
ORDER BY 1, time_s, step LIMIT ?3

-- :drawn
-- The first ?1 cells that have something to draw.
SELECT cell, label FROM cells
WHERE cell IN (SELECT cell FROM runs WHERE state IN ('done', 'diverged'))
ORDER BY cell LIMIT ?1

-- :drawn.count
SELECT count(*) FROM cells
WHERE cell IN (SELECT cell FROM runs WHERE state IN ('done', 'diverged'))

-- :cell.facts
SELECT key, value FROM run WHERE run_id = (SELECT min(run_id) FROM runs
  WHERE cell = ?1 AND state IN ('done', 'diverged')) LIMIT 200

-- :cell.seeds
SELECT run_id, seed FROM runs WHERE cell = ?1 ORDER BY run_id LIMIT 64

-- :cell.series.count
SELECT count(*) FROM series JOIN runs USING(run_id)
WHERE cell = ?1 AND peer IS NULL

-- :cell.series
-- Each seed's averaged model stands where a run has its peers.
WITH numbered AS (
  SELECT s.*, row_number() OVER (PARTITION BY run_id ORDER BY time_s, step)
      AS place, count(*) OVER (PARTITION BY run_id) AS count_
  FROM series s JOIN runs r USING(run_id)
  WHERE r.cell = ?1 AND s.peer IS NULL)
SELECT run_id AS peer, time_s, step, samples{series.charts}
FROM numbered WHERE place % ?2 = 0 OR place = 1 OR place = count_
ORDER BY 1, time_s, step LIMIT ?3

-- :points
SELECT run_id, peer, time_s{series.csv} FROM series ORDER BY 1, peer, time_s

-- :points.1
SELECT 1 AS run_id, peer, time_s{series.csv} FROM series
ORDER BY 1, peer, time_s
