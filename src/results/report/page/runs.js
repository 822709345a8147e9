/* The runs of the report as lines: of each setting the mean, a band, and the
 * peers or seeds one by one, against any of the axes. */
const PALETTE = ['#2a86c2', '#d1495b', '#2e8b57', '#b8860b', '#9067c0',
                 '#c45a1b', '#6b8794', '#b84d86'];
const CHARTS = report.charts.map(chart => ({...chart,
    format: (FORMATS[chart.format] || [])[0], axis: (FORMATS[chart.format] || [])[1]}));
/* What everything may be drawn against. */
const AXES = {
    time: {label: 'time', unit: '', format: seconds, tick: v => number(v) + ' s'},
    steps: {label: 'steps', unit: ' steps of a peer', format: v => number(Math.round(v)), tick: short},
    samples: {label: 'samples', unit: ' samples of all peers', format: v => number(Math.round(v)), tick: short},
    epochs: {label: 'epochs', unit: ' epochs', format: number, tick: short},
    bytes: {label: 'bytes sent', unit: ' sent by a peer', format: bytes, tick: bytes},
};
/* A link may say what to show: #bytes&log&smooth=5&each&goal=85&slot=3&failures */
const asked = new URLSearchParams(location.hash.slice(1));
const view = kept.view ??= {x: Object.keys(AXES).find(axis => asked.has(axis)) || 'time', log: asked.has('log'),
              smooth: Math.min(50, Math.max(0, Math.round(Number(asked.get('smooth'))) || 0)),
              averaged: true, band: true, peers: false, peersChosen: false, hidden: new Set()};

/* More lines than PALETTE has colours: hues apart by the golden angle. */
function colourOf(index, count) {
    if (count <= PALETTE.length) return PALETTE[index];
    const hue = index * 137.508 % 360, light = index % 2 ? 0.38 : 0.5, most = 0.62 * light;
    return '#' + [0, 8, 4].map(n => {
        const k = (n + hue / 30) % 12;
        const part = light - most * Math.max(-1, Math.min(k - 3, 9 - k, 1));
        return Math.round(255 * part).toString(16).padStart(2, '0');
    }).join('');
}

/* Rows of [at, value]: the value at an instant, linear between two of them. */
function between(points, at) {
    if (points.length === 0) return null;
    let i = 0;
    while (i < points.length && points[i][0] < at) i++;
    if (i === points.length) return points[i - 1][1];
    if (i === 0) return points[0][0] > 0 ? points[0][1] * Math.max(0, at) / points[0][0] : points[0][1];
    const [a, b] = [points[i - 1], points[i]];
    return a[1] + (at - a[0]) / (b[0] - a[0]) * (b[1] - a[1]);
}

/* Every row with its place on each axis. All count what a whole run has seen,
 * but steps and bytes, which are a peer's; a peer's samples stand for its share.
 * Of an averaged model that says no bytes, the peers' mean then stands. */
function place(run, row, share) {
    row.time = row.time_s;
    row.samples *= share;
    row.steps = run.batch > 0 ? row.samples / run.batch / run.nodes : row.step;
    row.epochs = run.rows > 0 ? row.samples / run.rows : null;
    if (run.isCell || row.peer < 0) {
        row.bytes = row.bytes_sent > 0 ? row.bytes_sent / run.nodes
            : between(run.sent, row.time_s);
    } else {
        row.bytes = row.bytes_sent;
    }
}

/* A line of the page: a run with its peers, or a cell with its seeds, each of
 * which is the averaged model of one run. */
const runs = report.runs.map((source, index) => {
    const isCell = source.cell !== null;
    const facts = new Map(source.facts.rows);
    const run = {isCell, facts, file: source.file, database: source.database, cell: source.cell,
        letter: isCell ? source.label
            : index < 26 ? String.fromCharCode(65 + index) : 'run ' + (index + 1),
        seed: facts.get('seed'),
        results: new Map(source.summary ? source.summary.rows : []),
        nodes: Number(facts.get('peers')) || 1, batch: Number(facts.get('batch')) || 0,
        rows: 0,
        series: new Map(), /* peer, or -1 for the averaged model -> rows */
        seeds: new Map(source.seeds ? source.seeds.rows : []), colour: '',
        spread: measures(source.spread), graph: source.graph, nodesInTime: measures(source.nodes),
        places: objects(source.places), zones: objects(source.zones),
        traffic: measures(source.traffic), pairs: measures(source.pairs),
        faults: objects(source.faults).map(readFault),
        verdicts: objects(source.verdicts), last: objects(source.last),
        speed: objects(source.speed), outcomes: objects(source.outcomes),
        events: objects(source.events), identities: objects(source.identities),
        eventsAll: source.events_all || 0, faultsAll: source.faults_all || 0};
    const whole = key => Number(run.results.get(key) ?? facts.get(key)) || 0;
    run.rows = whole('train_rows');
    /* Points on the way are of so many rows of the test set, the last of all. */
    run.part = {rows: whole('curve.rows'), all: isCell || whole('completed') ? whole('test_rows') : 0};
    run.sent = run.spread.map(row => [row.time_s, row['bytes_sent.mean']])
        .filter(point => point[1] !== null);
    for (const row of run.spread) place(run, Object.assign(row, {peer: 0, bytes_sent: row['bytes_sent.mean']}), source.peers_all);
    for (const row of measures(source.series).filter(row => row.time_s !== null)) {
        place(run, row, isCell || row.peer < 0 ? 1 : source.peers_all);
        if (isCell) for (const key of ['bytes_sent', 'done', 'waiting_s', 'idle_s'])
            if (!absent(row[key])) row[key] /= run.nodes;
        if (!run.series.has(row.peer)) run.series.set(row.peer, []);
        run.series.get(row.peer).push(row);
    }
    run.peers = [...run.series.keys()].filter(peer => peer >= 0).sort((a, b) => a - b);
    run.peersAll = isCell ? run.peers.length : source.peers_all;
    return run;
});
const several = runs.length > 1;
const single = runs.filter(run => !run.isCell); /* have peers, faults, marks */

/* A run as a seed: rows of its averaged model with a peer's counters, as the
 * cells of a sweep have them; where nobody has an average, the mean peer's. */
function seedRows(run) {
    const own = run.series.get(-1) || [];
    const take = chart => own.length === 0 || chart.counter;
    const means = run.spread.map(row => ({...row, ...Object.fromEntries(CHARTS.map(chart =>
        [chart.key, take(chart) ? row[chart.key + '.mean'] : null]))}));
    const counters = Object.fromEntries(CHARTS.filter(chart => chart.counter).map(chart => [chart.key, null]));
    return [...own.map(row => ({...row, ...counters})), ...means].sort((a, b) => a.time_s - b.time_s);
}

/* Runs in files of their own that differ in nothing but their seed, as a cell. */
function seedsCell(members) {
    const [first] = members, letters = members.map(run => run.letter);
    return {...first, isCell: true, members, cell: null, results: new Map(), spread: [], verdicts: [], intervals: [],
        letter: (letters.length > 4 ? letters[0] + ' … ' + letters.at(-1) : letters.join(', ')) + ' · ' + title(first),
        series: new Map(members.map((run, at) => [at, seedRows(run)])),
        seeds: new Map(members.map((run, at) => [at, run.seed])),
        peers: members.map((run, at) => at), peersAll: members.length};
}

/* What is drawn as one line in a colour of its own: a run, a cell of a sweep, or
 * the seeds of a setting. */
function settingsOf() {
    const groups = new Map();
    runs.forEach((run, index) => {
        const text = run.isCell ? null : run.facts.get('experiment');
        const key = absent(text) ? index
            : run.facts.get('world') + '\n' + String(text).replace(/^seed:.*\n?/m, '');
        /* The same seed a second time is another run. */
        const free = groups.has(key) && groups.get(key).every(other => other.seed !== run.seed);
        if (groups.has(key) && !free) groups.set(index, [run]);
        else groups.set(key, [...(groups.get(key) || []), run]);
    });
    const all = [...groups.values()];
    all.forEach((members, index) => members.forEach(run => { run.colour = colourOf(index, all.length); }));
    return all.map(members => members.length > 1 ? seedsCell(members) : members[0]);
}
const settings = settingsOf();
const compared = settings.length > 1;
if (!view.peersChosen) view.peers = asked.has('each') || (!several && single.length === 1 && runs[0].peersAll <= 16);

/* An axis that no row has a place on is not offered. */
function offered(axis) {
    return runs.some(run => [...run.series.values(), run.spread].some(rows =>
        rows.some(row => row[axis] > 0)));
}
if (!offered(view.x)) view.x = 'time';

function title(run) {
    const name = run.facts.get('name') || run.file;
    if (run.isCell) return run.letter;
    const world = run.facts.get('world');
    return world ? name + ' · ' + world : name;
}

/* kith train has one model, tested now and then, and the batches it sees. */
function lineName(run, peer) {
    const alone = run.facts.get('world') === 'train';
    const who = run.isCell ? (peer === 'mean' ? '' : 'seed ' + run.seeds.get(peer))
              : peer === 'mean' ? (alone ? 'run' : 'mean of peers')
              : peer < 0 ? (alone ? 'test set' : 'averaged model')
              : alone ? 'batches' : 'peer ' + peer;
    if (who === '') return run.letter;
    return compared || run.isCell ? run.letter + ' · ' + who : who;
}

/* Over seeds wherever one of them was evaluated, each carried forward from its
 * last evaluation: mean, and one deviation to either side. A seed that diverged
 * counts until then. */
function overSeeds(run, key) {
    const lines = run.peers.map(peer => run.series.get(peer).filter(row => !absent(row[key])));
    const instants = [...new Set(lines.flat().map(row => row.time_s))].sort((a, b) => a - b);
    const next = lines.map(() => 0), last = lines.map(() => null);
    const mean = list => list.reduce((sum, v) => sum + v, 0) / list.length;
    return instants.map(time_s => {
        lines.forEach((rows, i) => {
            while (next[i] < rows.length && rows[next[i]].time_s <= time_s)
                last[i] = rows[next[i]++];
        });
        const known = last.filter(row => row !== null);
        const values = known.map(row => row[key]), middle = mean(values);
        const apart = known.length < 2 ? 0 : Math.sqrt(values.reduce((sum, v) =>
            sum + (v - middle) ** 2, 0) / (known.length - 1));
        const row = {time: time_s, [key]: middle, low: middle - apart, high: middle + apart};
        for (const axis of ['steps', 'samples', 'epochs', 'bytes'])
            row[axis] = known.some(one => absent(one[axis])) ? null : mean(known.map(one => one[axis]));
        return row;
    });
}

/* Who has ended stands in the mean with its last row's loss, for ever: it is
 * drawn until half have, of those that are not gone by a crash. */
function whileMostTrain(run) {
    const gone = new Set(run.intervals.filter(one => one.kind === 'crash' && one.to === null)
        .flatMap(one => one.whom.map(([peer]) => peer)));
    const ends = run.peers.filter(peer => !gone.has(peer)).map(peer => ownRows(run.series.get(peer), 'loss').findLast(row => !absent(row.loss)))
        .filter(Boolean).map(row => row.time_s).sort((a, b) => a - b);
    const until = ends.length > 0 ? ends[ends.length >> 1] : Infinity;
    return run.spread.filter(row => row.time_s <= until);
}

/* Peers of a lab are evaluated one after another: their mean has a point when as
 * many evaluations have come as there are such peers, and is no staircase of what
 * is carried forward. In a simulation that is every instant of evaluation. */
function roundsOf(run, key) {
    if (key === 'loss') return whileMostTrain(run);
    if (!['accuracy', 'test_loss'].includes(key)) return run.spread;
    const told = run.peers.map(peer => run.series.get(peer).filter(row => !absent(row[key]))).filter(rows => rows.length > 0);
    const times = told.flat().map(row => row.time_s).sort((a, b) => a - b);
    const many = told.filter(rows => rows.length > 1).length || told.length; /* some are evaluated at the end alone */
    const ends = times.filter((_, at) => (at + 1) % many === 0 || at + 1 === times.length);
    let next = 0;
    const rows = run.spread.filter((row, at) => {
        const due = next < ends.length && row.time_s >= ends[next];
        while (next < ends.length && row.time_s >= ends[next]) next++;
        return due || at + 1 === run.spread.length;
    });
    return ends.length > 0 ? rows : run.spread;
}

/* A peer's rows for a chart. The lab adds a last row from the test set; its loss
 * is another quantity than that of the batches before it. */
function ownRows(rows, key) {
    const batches = rows.filter(row => row.accuracy === null && !absent(row.loss));
    return key === 'loss' && batches.length > 0 ? evened(batches) : rows;
}

/* A row's loss is the mean over the steps since the row before. Rows come by the
 * clock: on a busy machine one may have a single batch, whose noise looks like a
 * fault. Such rows are joined until they have half as many steps as most have. */
function evened(rows) {
    const counts = rows.map((row, at) => Math.max(0, row.step - (at > 0 ? rows[at - 1].step : 0)));
    const least = counts.slice().sort((a, b) => a - b)[rows.length >> 1] / 2, all = [];
    let steps = 0, sum = 0;
    rows.forEach((row, at) => {
        steps += counts[at];
        sum += row.loss * counts[at];
        if (steps < least && at + 1 < rows.length) return;
        all.push(steps > 0 ? {...row, loss: sum / steps} : row);
        steps = sum = 0;
    });
    return all;
}

/* The mean of so many points to either side, and the point itself. */
function smoothed(points, reach) {
    if (reach === 0) return points;
    return points.map(([x], at) => {
        const near = points.slice(Math.max(0, at - reach), at + reach + 1);
        const mean = k => near.reduce((sum, point) => sum + point[k], 0) / near.length;
        return near[0].length > 2 ? [x, mean(1), mean(2), mean(3)] : [x, mean(1)];
    });
}

/* Points of a chart: [x, y], or [x, y, low, high] of a line with a band. */
function pointsOf(rows, value, band) {
    const points = rows.filter(row => !absent(value(row)) && !absent(row[view.x]) &&
                               !(view.log && row[view.x] <= 0))
        .map(row => band ? [row[view.x], value(row), ...band(row)] : [row[view.x], value(row)]);
    return smoothed(points.sort((a, b) => a[0] - b[0]), view.smooth);
}

function linesOf(chart) {
    const lines = [], key = chart.key;
    for (const run of settings) {
        const add = (peer, kind, points) => {
            if (points.length > 0)
                lines.push({run, peer, kind, name: lineName(run, peer), points});
        };
        if (run.isCell) {
            const rows = overSeeds(run, key), value = row => row[key];
            add('mean', 'averaged', run.peers.length > 1
                ? pointsOf(rows, value, row => [row.low, row.high]) : pointsOf(rows, value));
            if (run.peers.length > 1) for (const peer of run.peers)
                add(peer, 'peer', pointsOf(run.series.get(peer), value));
            continue;
        }
        /* A counter of the averaged model is the whole run's. */
        const own = chart.counter ? [] : pointsOf(run.series.get(-1) || [], row => row[key]);
        add(-1, 'averaged', own);
        const many = run.peersAll > 1, of = end => row => row[key + '.' + end];
        const over = pointsOf(roundsOf(run, key), of('mean'),
                              many ? row => [of('low')(row), of('high')(row)] : null);
        if (own.length === 0) add('mean', 'averaged', over);
        else if (many) add('mean', 'mean', over);
        for (const peer of run.peers)
            add(peer, 'peer', pointsOf(ownRows(run.series.get(peer), key), row => row[key]));
    }
    /* Averages are drawn last, on top. */
    const rank = {peer: 0, mean: 1, averaged: 2};
    return lines.sort((a, b) => rank[a.kind] - rank[b.kind]);
}

/* The rows that say how far a run was at which time, for its faults. */
function clock(run) {
    return run.spread.length > 0 ? run.spread : run.series.get(-1) || run.series.get(run.peers[0]) || [];
}

/* A time of a run on the axis that is drawn. */
function onAxis(run, time) {
    if (view.x === 'time') return time;
    return between(clock(run).filter(row => !absent(row[view.x]))
        .map(row => [row.time_s, row[view.x]]), time);
}

/* --- faults as intervals ----------------------------------------------- */

/* A row; "cut 0..499 <-> 500..999" is one of many links. */
function readFault(fault) {
    const kind = fault.kind === 'slow' && fault.factor === 1 ? 'slow ends' : String(fault.kind);
    const many = /^(cut|heal) (.+)$/.exec(kind);
    return many ? {...fault, kind: many[1], sides: many[2]} : {...fault, kind};
}

const someFaults = run => run.faultsAll > run.faults.length && run.faults.length > 0;

const ENDS = {restart: 'crash', resume: 'pause', heal: 'cut', 'slow ends': 'slow'};

/* Each fault with its end, and what began and ended together as one: {kind,
 * from, to, whom: [[peer, other], ...]}; to is null where it never ended. Of very
 * many the page has the first ones: what they leave open ends where they do. */
function intervalsOf(run) {
    const open = new Map(), all = [];
    for (const fault of run.faults) {
        const kind = Object.hasOwn(ENDS, fault.kind) ? ENDS[fault.kind] : fault.kind;
        const who = [kind, fault.peer, fault.other, fault.sides].join('|');
        if (kind !== fault.kind) {
            if (open.has(who)) open.get(who).to = fault.time_s;
            open.delete(who);
            continue;
        }
        const interval = {kind, from: fault.time_s, to: null, whom: [[fault.peer, fault.other]],
            sides: fault.sides, factor: fault.factor};
        open.set(who, interval);
        all.push(interval);
    }
    if (someFaults(run)) for (const one of open.values()) one.to = run.faults.at(-1).time_s;
    const merged = new Map();
    for (const one of all) {
        const key = [one.kind, one.from, one.to, one.sides].join('|');
        if (merged.has(key)) merged.get(key).whom.push(...one.whom);
        else merged.set(key, one);
    }
    return [...merged.values()];
}
for (const run of runs) run.intervals = intervalsOf(run);

/* "peers 1, 3"; of links "peers 0, 1 ↔ 4, 5", where both directions are cut */
function whomText(one) {
    if (one.sides) return 'peers ' + one.sides.replace('<->', '↔').replace('->', '→');
    const towards = new Map(), groups = new Map();
    for (const [peer, other] of one.whom) {
        if (!towards.has(peer)) towards.set(peer, []);
        if (!absent(other)) towards.get(peer).push(other);
    }
    for (const [peer, others] of [...towards].sort((a, b) => a[0] - b[0])) {
        const key = others.sort((a, b) => a - b).join(', ');
        groups.set(key, [...(groups.get(key) || []), peer]);
    }
    const few = text => { const all = text.split(', '); return all.slice(0, 16).join(', ') + (all.length > 16 ? ' …' : ''); };
    const names = [], back = new Set();
    for (const [others, peers] of groups) {
        const from = peers.join(', '), both = others !== '' && groups.get(from)?.join(', ') === others;
        if (both && back.has(from)) continue;
        back.add(others);
        names.push((peers.length > 1 ? 'peers ' : 'peer ') + few(from) + (others === '' ? '' : (both ? ' ↔ ' : ' → ') + few(others)));
    }
    return names.slice(0, 16).join('; ') + (names.length > 16 ? ' and ' + (names.length - 16) + ' more' : '');
}

/* "crash of peers 1, 3 from 1 s to 1.636 s" */
function tellInterval(run, one) {
    return (several ? run.letter + ': ' : '') + one.kind + ' of ' + whomText(one) + ' from ' + seconds(one.from) +
        (one.to === null ? ' on' : ' to ' + seconds(one.to));
}
