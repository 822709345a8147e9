/* The page of `kith report`. All data comes from the JSON element of the page
 * and reaches the document as text nodes only; dygraphs sees labels that this
 * script made. */
'use strict';
(() => {
const report = JSON.parse(document.getElementById('kith-data').textContent);
const PALETTE = ['#0b6fa4', '#d1495b', '#2e8b57', '#b8860b', '#7b4fa6',
                 '#c45a1b', '#4b6370', '#a23b72'];
const FAULT_COLOURS = {crash: '#c62828', restart: '#2e7d32', pause: '#ef6c00',
    resume: '#2e7d32', slow: '#8e24aa',
    'slow ends': '#2e7d32', cut: '#6d4c41', heal: '#2e7d32'};
const percent = v => (100 * v).toFixed(2) + ' %';
const digits = n => v => Number((100 * v).toPrecision(n)) + ' %';
/* How values of a chart and of its axis are written; else as numbers. */
const FORMATS = {percent: [percent, digits(4)], share: [digits(3), digits(3)],
    overlap: [v => (100 * v).toFixed(1) + ' %', digits(3)], bytes: [bytes, bytes]};
const CHARTS = report.charts.map(chart => ({...chart,
    format: (FORMATS[chart.format] || [])[0], axis: (FORMATS[chart.format] || [])[1]}));
const view = {x: location.hash === '#samples' ? 'samples' : 'time', averaged: true,
              peers: report.runs.length <= 4, hidden: new Set()};

/* --- small tools ------------------------------------------------------ */

function make(tag, properties, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties || {})) {
        if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
        else if (name === 'style') Object.assign(element.style, value);
        else element.setAttribute(name, value);
    }
    for (const child of children.flat(Infinity)) {
        if (child === null || child === undefined) continue;
        element.append(child instanceof Node ? child : String(child));
    }
    return element;
}

function number(value) {
    if (value === null || value === undefined || value === '') return '–';
    if (typeof value !== 'number') return String(value);
    if (Number.isInteger(value)) return value.toLocaleString('en');
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(3);
    return String(Number(value.toPrecision(5)));
}

function bytes(value) {
    if (value === null || value === undefined) return '–';
    const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];
    let at = 0, size = Number(value);
    while (Math.abs(size) >= 1000 && at + 1 < units.length) { size /= 1000; at++; }
    return Number(size.toPrecision(4)) + ' ' + units[at];
}

function short(value) {
    const size = Math.abs(value);
    return size >= 1e6 ? Number((value / 1e6).toPrecision(4)) + ' M'
         : size >= 1e4 ? Number((value / 1e3).toPrecision(4)) + ' k'
         : String(Number(value.toPrecision(4)));
}

function flops(value) {
    if (value === null || value === undefined) return '–';
    const units = ['', 'k', 'M', 'G', 'T', 'P'];
    let at = 0, size = Number(value);
    while (Math.abs(size) >= 1000 && at + 1 < units.length) { size /= 1000; at++; }
    return Number(size.toPrecision(4)) + ' ' + units[at] + 'FLOP/s';
}

function seconds(value) {
    if (value === null || value === undefined) return '–';
    return Number(value).toLocaleString('en', {maximumFractionDigits: 3}) + ' s';
}

/* A table of the report: {columns, rows} -> objects; none has no rows. */
function objects(table) {
    if (!table) return [];
    return table.rows.map(row =>
        Object.fromEntries(table.columns.map((name, at) => [name, row[at]])));
}

/* --- the runs --------------------------------------------------------- */

/* More lines than PALETTE has colours: hues apart by the golden angle. */
function colourOf(index) {
    if (report.runs.length <= PALETTE.length) return PALETTE[index];
    const hue = index * 137.508 % 360, light = index % 2 ? 0.38 : 0.5, most = 0.62 * light;
    return '#' + [0, 8, 4].map(n => {
        const k = (n + hue / 30) % 12;
        const part = light - most * Math.max(-1, Math.min(k - 3, 9 - k, 1));
        return Math.round(255 * part).toString(16).padStart(2, '0');
    }).join('');
}

/* A line of the page: a run with its peers, or a cell with its seeds, each of
 * which is the averaged model of one run. */
const runs = report.runs.map((source, index) => {
    const isCell = source.cell !== null;
    const letter = isCell ? source.label
        : index < 26 ? String.fromCharCode(65 + index) : 'run ' + (index + 1);
    const facts = new Map(source.facts.rows),
          results = new Map(source.summary ? source.summary.rows : []);
    const nodes = Number(facts.get('peers')) || 1;
    const series = new Map(); /* peer, or -1 for the averaged model -> rows */
    for (const row of objects(source.series)) {
        /* One scale for all: the samples of the whole run. A peer knows its own
         * and stands for its share. */
        if (isCell) for (const key of ['bytes_sent', 'done', 'waiting_s']) row[key] /= nodes;
        else if (row.peer >= 0) row.samples *= source.peers_all;
        if (!series.has(row.peer)) series.set(row.peer, []);
        series.get(row.peer).push(row);
    }
    const peers = [...series.keys()].filter(peer => peer >= 0);
    return {letter, facts, results, series, file: source.file, isCell,
            database: source.database, cell: source.cell,
            seeds: new Map(source.seeds ? source.seeds.rows : []),
            colour: colourOf(index), peers,
            peersAll: isCell ? peers.length : source.peers_all,
            faults: objects(source.faults).map(fault => fault.kind === 'slow' &&
                fault.factor === 1 ? {...fault, kind: 'slow ends'} : fault),
            verdicts: objects(source.verdicts),
            last: objects(source.last), speed: objects(source.speed), outcomes: objects(source.outcomes), events: objects(source.events),
            identities: objects(source.identities),
            eventsAll: source.events_all || 0};
});
const several = runs.length > 1;
const single = runs.filter(run => !run.isCell); /* have peers, faults, marks */

function title(run) {
    const name = run.facts.get('name') || run.file;
    if (run.isCell) return run.letter;
    const world = run.facts.get('world');
    return world ? name + ' · ' + world : name;
}

/* --- series for the charts -------------------------------------------- */

/* kith train has one model, tested now and then, and the batches it sees. */
function lineName(run, peer) {
    const alone = run.facts.get('world') === 'train';
    const who = run.isCell ? (peer === 'mean' ? '' : 'seed ' + run.seeds.get(peer))
              : peer === 'mean' ? (alone ? 'run' : 'mean of peers')
              : peer < 0 ? (alone ? 'test set' : 'averaged model')
              : alone ? 'batches' : 'peer ' + peer;
    if (who === '') return run.letter;
    return several || run.isCell ? run.letter + ' · ' + who : who;
}

/* Seconds, or samples of all peers together. */
function abscissa(row) {
    return view.x === 'time' ? row.time_s : row.samples;
}

/* The mean over peers at every instant where one of them has a row, each
 * carried forward from its last one; consensus distance by its root mean
 * square. */
function meanOfPeers(run, key) {
    const lines = run.peers.map(peer => run.series.get(peer));
    const instants = [...new Set(lines.flat().filter(row => row[key] !== null)
        .map(row => row.time_s))].sort((a, b) => a - b);
    const next = lines.map(() => 0), value = lines.map(() => null),
          samples = lines.map(() => 0);
    /* One point a round. In the lab all the others report between two rows of one
     * peer; in a simulation all of them report at once. */
    const longest = Math.max(...lines.map(rows =>
        rows.filter(row => row[key] !== null).length));
    const stride = Math.max(1, Math.round(instants.length / longest));
    const rounds = instants.filter((_, i) => i % stride === stride - 1 ||
                                             i + 1 === instants.length);
    return rounds.map(time_s => {
        lines.forEach((rows, i) => {
            while (next[i] < rows.length && rows[next[i]].time_s <= time_s) {
                const row = rows[next[i]++];
                if (row[key] !== null) value[i] = row[key];
                if (row.samples !== null) samples[i] = row.samples;
            }
        });
        const known = value.filter(v => v !== null);
        const square = key === 'consensus_distance';
        const sum = known.reduce((s, v) => s + (square ? v * v : v), 0);
        const mean = square ? Math.sqrt(sum / known.length) : sum / known.length;
        return {time_s, samples: samples.reduce((s, v) => s + v, 0) /
                                 Math.max(1, samples.length), [key]: mean};
    });
}

/* The mean over seeds wherever one of them was evaluated, each carried forward
 * from its last evaluation. A seed that diverged counts until then. */
function meanOfSeeds(run, key) {
    const lines = run.peers.map(peer => run.series.get(peer).filter(row => row[key] != null));
    const instants = [...new Set(lines.flat().map(row => row.time_s))].sort((a, b) => a - b);
    const next = lines.map(() => 0), last = lines.map(() => null);
    const mean = list => list.reduce((sum, v) => sum + v, 0) / list.length;
    return instants.map(time_s => {
        lines.forEach((rows, i) => {
            while (next[i] < rows.length && rows[next[i]].time_s <= time_s)
                last[i] = rows[next[i]++];
        });
        const known = last.filter(row => row !== null);
        return {time_s, samples: mean(known.map(row => row.samples)),
                [key]: mean(known.map(row => row[key]))};
    });
}

/* A peer's rows for a chart. The lab adds a last row from the test set; its loss
 * is another quantity than that of the batches before it. */
function ownRows(rows, key) {
    const batches = rows.filter(row => row.accuracy === null);
    return key === 'loss' && batches.length > 0 ? batches : rows;
}

function linesOf(chart) {
    const lines = [], key = chart.key;
    for (const run of runs) {
        const add = (peer, rows, kind) => {
            const points = rows.filter(row => row[key] !== null &&
                row[key] !== undefined && abscissa(row) !== null);
            if (points.length === 0) return;
            lines.push({run, peer, kind, name: lineName(run, peer),
                points: points.map(row => [abscissa(row), row[key]])});
        };
        const before = lines.length;
        if (run.isCell) {
            add('mean', meanOfSeeds(run, key), 'averaged');
            if (run.peers.length > 1) for (const peer of run.peers)
                add(peer, run.series.get(peer), 'peer');
            continue;
        }
        /* A counter of the averaged model is the whole run's. */
        if (!chart.counter) add(-1, run.series.get(-1) || [], 'averaged');
        if (lines.length === before && run.peers.length > 0)
            add('mean', meanOfPeers(run, key), 'averaged');
        for (const peer of run.peers)
            add(peer, ownRows(run.series.get(peer), key), 'peer');
    }
    /* Averages are drawn last, on top. */
    return lines.sort((a, b) => (a.kind === 'averaged') - (b.kind === 'averaged'));
}

/* dygraphs wants one matrix: an abscissa and one column per line. */
function matrix(lines) {
    const rows = new Map();
    lines.forEach((line, column) => {
        for (const [x, y] of line.points) {
            if (!rows.has(x)) rows.set(x, new Array(lines.length).fill(null));
            rows.get(x)[column] = y;
        }
    });
    /* Every plot starts at 0, so that a run with one row is one too. */
    if (!rows.has(0)) rows.set(0, new Array(lines.length).fill(null));
    return [...rows.entries()].sort((a, b) => a[0] - b[0])
        .map(([x, values]) => [x, ...values]);
}

/* --- fault marks ------------------------------------------------------ */

/* A run's samples at a time, read off its averaged (or first) line. */
function samplesAt(run, time) {
    const rows = run.series.get(-1) || run.series.get(run.peers[0]) || [];
    for (let i = 1; i < rows.length; i++) {
        if (rows[i].time_s >= time) {
            const a = rows[i - 1], b = rows[i];
            const share = (time - a.time_s) / Math.max(1e-9, b.time_s - a.time_s);
            return a.samples + Math.max(0, share) * (b.samples - a.samples);
        }
    }
    return rows.length ? rows[rows.length - 1].samples : 0;
}

/* One mark per instant and kind, however many peers and runs it struck. */
function marks() {
    const found = new Map();
    for (const run of runs) for (const fault of run.faults) {
        const x = view.x === 'time' ? fault.time_s : samplesAt(run, fault.time_s);
        const key = fault.kind + '|' + x.toPrecision(3);
        if (!found.has(key)) found.set(key, {kind: fault.kind, x, struck: new Map()});
        const struck = found.get(key).struck;
        struck.set(run.letter, (struck.get(run.letter) || 0) + 1);
    }
    return [...found.values()].sort((a, b) => a.x - b.x);
}

function drawMarks(canvas, area, graph) {
    const ends = []; /* where each row of labels is free again */
    canvas.save();
    canvas.font = '11px system-ui, sans-serif';
    for (const mark of marks()) {
        const at = Math.round(graph.toDomXCoord(mark.x)) + 0.5;
        if (at < area.x || at > area.x + area.w) continue;
        canvas.strokeStyle = canvas.fillStyle =
            FAULT_COLOURS[mark.kind] || '#555';
        canvas.setLineDash([4, 3]);
        canvas.globalAlpha = 0.8;
        canvas.beginPath();
        canvas.moveTo(at, area.y);
        canvas.lineTo(at, area.y + area.h);
        canvas.stroke();
        const count = Math.max(...mark.struck.values());
        const label = (mark.struck.size < runs.length
            ? [...mark.struck.keys()].join('') + ' ' : '') + mark.kind +
            (count > 1 ? ' ×' + count : '');
        const width = canvas.measureText(label).width + 8;
        const left = Math.min(at + 3, area.x + area.w - width);
        let row = 0;
        while (row < 4 && ends[row] > left) row++;
        if (row === 4) continue;
        ends[row] = left + width;
        canvas.globalAlpha = 0.85;
        const ink = canvas.fillStyle;
        canvas.fillStyle = colour('--card');
        canvas.fillRect(left - 1, area.y + 1 + 13 * row, width - 4, 12);
        canvas.globalAlpha = 1;
        canvas.fillStyle = ink;
        canvas.fillText(label, left, area.y + 11 + 13 * row);
    }
    canvas.restore();
}

/* --- charts ----------------------------------------------------------- */

const charts = []; /* {chart, box, graph, lines} */
let syncing = false;

function visible(line) {
    if (view.hidden.has(line.name)) return false;
    return line.kind === 'averaged' ? view.averaged : view.peers;
}

/* A colour of page.css, as the canvas needs it. */
function colour(name) {
    return getComputedStyle(document.body).getPropertyValue(name).trim();
}

function lineOptions(line) {
    const averaged = line.kind === 'averaged';
    return {color: averaged ? line.run.colour : shade(line),
            strokeWidth: averaged ? 2.5 : 1,
            strokePattern: line.peer === 'mean' && !line.run.isCell ? [7, 3] : null,
            drawPoints: line.points.length < 2, pointSize: 3};
}

/* Peers of one run alone get their own hues; of several runs, the run's. */
function shade(line) {
    if (several || line.run.isCell) return line.run.colour + '66';
    const at = line.run.peers.indexOf(line.peer);
    return 'hsl(' + Math.round(360 * at / line.run.peers.length) + ' 45% 55%)';
}

function showValues(entry, x, points, name) {
    const format = entry.chart.format || number;
    const chosen = points.filter(point => Number.isFinite(point.yval))
        .filter(point => point.name === name ||
            entry.lines.some(l => l.name === point.name && l.kind === 'averaged'));
    entry.values.replaceChildren(
        make('span', {class: 'at'}, view.x === 'time' ? seconds(x)
                                                      : number(Math.round(x)) + ' samples'),
        ...chosen.map(point => {
            const line = entry.lines.find(l => l.name === point.name);
            return make('span', {}, make('i', {class: 'chip', style:
                {background: lineOptions(line).color}}), point.name, ' ',
                make('b', {}, format(point.yval)));
        }));
}

function draw(entry) {
    const {chart} = entry;
    entry.lines = linesOf(chart);
    entry.box.hidden = entry.lines.every(l => l.points.every(p => p[1] === 0));
    if (entry.graph) { entry.graph.destroy(); entry.graph = null; }
    if (entry.box.hidden) return;
    const positive = entry.lines.every(l => l.points.every(p => p[1] > 0));
    entry.logBox.parentElement.hidden = !positive;
    /* What diverged would flatten all the others. */
    if (positive && !entry.drawn && chart.key === 'loss') {
        const values = entry.lines.flatMap(l => l.points.map(p => p[1]));
        const most = values.reduce((a, b) => Math.max(a, b)), least = values.reduce((a, b) => Math.min(a, b));
        entry.logBox.checked = most > 1000 * least;
    }
    entry.drawn = true;
    const options = {
        labels: ['x', ...entry.lines.map(line => line.name)],
        series: Object.fromEntries(
            entry.lines.map(line => [line.name, lineOptions(line)])),
        visibility: entry.lines.map(visible),
        legend: 'never', connectSeparatedPoints: true, logscale:
            positive && entry.logBox.checked,
        highlightSeriesOpts: {strokeWidth: 3}, highlightSeriesBackgroundAlpha: 1,
        gridLineColor: colour('--grid'), axisLineColor: colour('--quiet'),
        axisLabelFontSize: 12, rightGap: 12, xRangePad: 4,
        axisLabelWidth: 62, includeZero: false,
        axes: {x: {valueFormatter: number, axisLabelWidth: 64,
                   axisLabelFormatter: v => view.x === 'time' ? number(v) + ' s'
                       : short(v)},
               y: {axisLabelFormatter: v => (chart.axis || short)(v)}},
        underlayCallback: drawMarks,
        highlightCallback: (event, x, points, row, name) =>
            showValues(entry, x, points, name),
        unhighlightCallback: () => entry.values.replaceChildren(),
        drawCallback: (graph, initial) => {
            if (syncing || initial) return;
            syncing = true;
            for (const other of charts) if (other.graph && other.graph !== graph)
                other.graph.updateOptions(graph.isZoomed('x')
                    ? {dateWindow: graph.xAxisRange()} : {dateWindow: null});
            syncing = false;
        },
    };
    entry.graph = new Dygraph(entry.plot, matrix(entry.lines), options);
    entry.box.dataset.lines = entry.lines.length;
}

function redraw() {
    charts.forEach(draw);
}

function restyle() {
    for (const entry of charts) if (entry.graph)
        entry.graph.updateOptions({visibility: entry.lines.map(visible)});
}

/* --- controls --------------------------------------------------------- */

function choice(name, value, label, now, act) {
    const input = make('input', {type: 'radio', name, value});
    input.checked = now;
    input.addEventListener('change', () => act(value));
    return make('label', {}, input, label);
}

function tick(label, now, act) {
    const input = make('input', {type: 'checkbox'});
    input.checked = now;
    input.addEventListener('change', () => act(input.checked));
    return make('label', {}, input, label);
}

function legend() {
    const names = new Map();
    /* Seeds follow the tick; so many would hide the cells. */
    for (const entry of charts) for (const line of entry.lines)
        if (!names.has(line.name) && !(line.run.isCell && line.kind === 'peer'))
            names.set(line.name, line);
    return make('div', {class: 'legend'}, [...names.values()].sort((a, b) =>
        (b.kind === 'averaged') - (a.kind === 'averaged')).map(line => {
        const button = make('button', {type: 'button', 'aria-pressed': 'true',
            title: 'show or hide'}, make('i', {class: 'chip', style:
            {background: lineOptions(line).color}}), line.name);
        button.addEventListener('click', () => {
            const hide = !view.hidden.has(line.name);
            if (hide) view.hidden.add(line.name);
            else view.hidden.delete(line.name);
            button.setAttribute('aria-pressed', String(!hide));
            restyle();
        });
        return button;
    }));
}

function controls() {
    return make('div', {class: 'controls'},
        make('span', {}, 'Against '),
        choice('x', 'time', 'time', view.x === 'time', x => { view.x = x; redraw(); }),
        choice('x', 'samples', 'samples of all peers', view.x === 'samples',
               x => { view.x = x; redraw(); }),
        tick(single.length === 0 ? 'mean of seeds' : 'averaged', view.averaged, on => { view.averaged = on; restyle(); }),
        tick(single.length === 0 ? 'each seed' : single.length < runs.length ? 'each peer or seed' : 'each peer', view.peers, on => { view.peers = on; restyle(); }),
        make('span', {class: 'hint'},
             'drag to zoom, double click to go back, shift-drag to pan'));
}

function chartBox(chart) {
    const entry = {chart, graph: null, lines: []};
    entry.logBox = make('input', {type: 'checkbox'});
    entry.logBox.addEventListener('change', () =>
        entry.graph.updateOptions({logscale: entry.logBox.checked}));
    entry.plot = make('div', {class: 'plot'});
    entry.values = make('div', {class: 'values'});
    entry.box = make('section', {class: 'chart', id: 'chart-' + chart.key},
        make('h3', {}, chart.title, make('small', {}, ' ' + chart.unit),
             make('label', {class: 'log'}, entry.logBox, 'log')),
        entry.values, entry.plot);
    charts.push(entry);
    return entry.box;
}

/* --- tables ----------------------------------------------------------- */

function table(id, heads, rows) {
    return make('div', {class: id === 'summary' || id === 'troubles' ? 'scroll whole' : 'scroll'}, make('table', {id},
        make('thead', {}, make('tr', {}, heads.map((head, i) => make('th',
            rows.some(row => typeof row[i] === 'number') ? {class: 'n'} : {}, head)))),
        make('tbody', {}, rows.map(cells => make('tr', {},
            cells.map(cell => cell instanceof Node ? make('td', {}, cell)
                : make('td', typeof cell === 'number' ? {class: 'n'} : {},
                       typeof cell === 'number' ? number(cell) : cell ?? '–')))))));
}

/* A section, or nothing where there is nothing to show. */
function section(name, ...content) {
    return make('section', {}, make('h2', {}, name), content);
}

function factText(key, value) {
    if (value === null || value === undefined || value === '') return '–';
    const plain = Number(value);
    if (key === 'completed') return plain ? 'yes' : 'no, interrupted';
    if (!Number.isFinite(plain) || /hash|seed|build/.test(key)) return value;
    if (/flop_per_s$/.test(key)) return flops(plain);
    if (/per_s$/.test(key)) return short(plain) + '/s';
    if (/mfu$|overlap$|utilisation$|idle_share$/.test(key)) return Number((100 * plain).toPrecision(3)) + ' %';
    if (/^accuracy/.test(key)) return (100 * plain).toFixed(2) + ' %';
    if (/bytes|in_flight/.test(key)) return bytes(plain);
    if (/_s$/.test(key)) return seconds(plain);
    return number(plain);
}

/* What a reader looks for first; the rest follows by name. */
const ORDER = ['world', 'peers', 'seed', 'algorithm', 'topology', 'model', 'batch',
    'completed', 'accuracy.averaged', 'accuracy.mean', 'accuracy.worst',
    'loss.averaged', 'loss.mean', 'loss.worst', 'time_to_target_s', 'consensus_distance',
    'staleness.mean', 'staleness.max', 'utilisation', 'steps',
    'samples', 'virtual_s', 'wall_s', 'events', 'exchanges.attempts',
    'exchanges.done', 'exchanges.failed', 'exchanges.refused', 'exchanges.skipped',
    'exchanges.torn', 'bytes.sent', 'bytes.per_peer_max', 'channel.in_flight_mean',
    'channel.in_flight_max', 'channel.idle_s', 'channel.idle_share', 'channel.passes',
    'cpu.train_s', 'cpu.aead_s',
    'cpu.socket_s', 'cpu.other_s', 'speed.samples_per_s', 'speed.tokens_per_s',
    'speed.flop_per_s', 'speed.mfu', 'speed.peak_flop_per_s', 'speed.data_wait_s',
    'speed.exchange_overlap', 'speed.memory_bytes', 'compute.products',
    'compute.threads', 'faults', 'violations', 'trace_hash'];

function summary() {
    const runs = single, several = runs.length > 1;
    if (runs.length === 0) return null;
    const all = runs.map(run => new Map([...run.results, ...run.facts]));
    const rank = key => (ORDER.indexOf(key) + 1) || ORDER.length + 1;
    const keys = [...new Set(all.flatMap(facts => [...facts.keys()]))]
        .filter(key => !['experiment', 'schema', 'name', 'products', 'threads',
                         'peak_flop_per_s'].includes(key) &&
            all.some(facts => facts.get(key) !== null))
        .sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
    const name = key => key.replace('virtual_s', 'virtual time')
        .replace('wall_s', 'wall time').replace('time_to_target_s', 'time to target loss').replace(/_per_s$/, '').replace(/_s$/, '')
        .replace('mfu', 'MFU').replace('flop', 'FLOP').replaceAll('_', ' ')
        .replaceAll('.', ' · ');
    if (!several) return section('Summary', make('dl', {id: 'summary'},
        [...keys.map(key => [name(key), factText(key, all[0].get(key))]),
         ['database', runs[0].file]].map(([key, value]) => make('div', {},
            make('dt', {}, key), make('dd', {}, value)))));
    return section('Summary', table('summary',
        ['', ...runs.map(run => make('span', {}, make('i',
            {class: 'chip', style: {background: run.colour}}),
            run.letter + ' · ' + title(run)))],
        [...keys.map(key => [name(key), ...all.map(facts => factText(key, facts.get(key)))]),
         ['database', ...runs.map(run => run.file)]]));
}

/* --- the comparison ---------------------------------------------------- */

const COLUMNS = report.comparison.columns.map(([key, head, format]) =>
    [key, head, {number, seconds, bytes, percent}[format]]);

/* "0.3689 ± 0.002", and of how many where some have no value. */
function spreadText(spread, format, all) {
    if (spread.count === 0) return '–';
    const two = v => Number(v.toPrecision(2));
    const about = !spread.deviation ? ''
        : '± ' + (format === number ? two(spread.deviation) : format(two(spread.deviation)));
    return make('span', {}, format(Number(spread.mean.toPrecision(5))),
        make('small', {}, about + (spread.count < all ? ' (' + spread.count + ' of ' + all + ')' : '')));
}

/* Rows in the order of a column: a click sorts, another turns it round. */
function sortable(id, heads, rows, keys) {
    const body = make('tbody', {}), state = {column: -1, down: false};
    const fill = () => body.replaceChildren(...rows.map((row, at) => [row, keys[at]])
        .sort((a, b) => {
            const [x, y] = [a[1][state.column], b[1][state.column]];
            if (state.column < 0 || x === y) return 0;
            if (x === null || y === null) return x === null ? 1 : -1;
            return (x < y ? -1 : 1) * (state.down ? -1 : 1);
        }).map(([row]) => row));
    const head = make('tr', {}, heads.map((text, at) => make('th',
        {class: at > 0 ? 'n' : '', title: 'sort', onclick: () => {
            state.down = state.column === at && !state.down;
            state.column = at;
            fill();
        }}, text)));
    fill();
    return make('div', {class: 'scroll tall'}, make('table', {id, class: 'sortable'},
        make('thead', {}, head), body));
}

function comparison() {
    const {cells, runs: all} = report.comparison;
    if (cells.length < 2 && all.length < 2) return null;
    const shown = COLUMNS.filter(([key]) => cells.some(cell => cell[key].count > 0));
    const runnable = cells.filter(cell => cell.runs > 0);
    const lineOf = cell => runs.find(run => run.database === cell.database &&
        (run.cell === cell.cell || !run.isCell));
    const nameOf = cell => {
        const line = lineOf(cell);
        return make('span', {}, line ? make('i', {class: 'chip', style:
            {background: line.colour}}) : null,
            line && !line.isCell && several ? line.letter + ' · ' : '',
            cell.label.split(', ').map((part, at) => [at > 0 ? ', ' : '', make('span', {class: 'whole'}, part)]));
    };
    const rows = runnable.map(cell => make('tr', {}, make('td', {}, nameOf(cell)),
        make('td', {class: 'n'}, cell.runs), shown.map(([key, , format]) =>
            make('td', {class: 'n'}, spreadText(cell[key], format, cell.runs)))));
    const keys = runnable.map(cell => [cell.label, cell.runs,
        ...shown.map(([key]) => cell[key].mean)]);
    const troubles = [
        ...all.filter(run => run.state !== 'done').map(run => [run.label, 'seed ' + run.seed,
            make('span', {class: 'broken'}, run.state), run.problem]),
        ...all.filter(run => run.state === 'done' && run.violations > 0).map(run =>
            [run.label, 'seed ' + run.seed, make('span', {class: 'broken'}, '✗ broken'),
             run.violations + (run.violations === 1 ? ' assertion' : ' assertions')]),
        ...cells.filter(cell => cell.refused !== null).map(cell =>
            [cell.label, '–', 'refused', cell.refused])];
    return section('Comparison',
        make('p', {class: 'hint'}, 'mean ± deviation over the seeds; steps of all nodes; click a heading to sort'),
        sortable('comparison', ['cell', 'runs', ...shown.map(([, head]) => head)], rows, keys),
        troubles.length === 0 ? null : make('details', {open: ''},
            make('summary', {}, troubles.length + ' of note'),
            table('troubles', ['cell', 'seed', 'state', 'why'], troubles)));
}

const withRun = heads => several ? ['run', ...heads] : heads;
const cells = (run, list) => several ? [run.letter, ...list] : list;

function verdicts() {
    const rows = runs.flatMap(run => run.verdicts.map(verdict => cells(run, [
        verdict.text,
        make('span', {class: verdict.held ? 'held' : 'broken'},
             verdict.held ? '✓ held' : '✗ broken'),
        verdict.value, seconds(verdict.time_s)])));
    return rows.length === 0 ? null : section('Verdicts', table('verdicts',
        withRun(['assertion', 'verdict', 'value', 'at']), rows));
}

function exchanges() {
    const counts = ['attempts', 'done', 'failed', 'refused', 'skipped', 'torn'];
    const rows = runs.flatMap(run => run.last.map(row => cells(run, [
        'peer ' + row.peer, row.step, ...counts.map(key => row[key]),
        bytes(row.bytes_sent), bytes(row.bytes_received), seconds(row.waiting_s)])));
    return rows.length === 0 ? null : section('Exchanges', runs.map(note),
        table('exchanges', withRun(['peer', 'steps', ...counts, 'sent', 'received',
                                    'waiting']), rows));
}

/* Whose models a guard clipped or rejected, whose were refused, and who left
 * others waiting. */
function identities() {
    const far = v => v === null ? '–' : short(v);
    const rows = runs.flatMap(run => run.identities.map(row => cells(run, [
        'peer ' + row.peer, row.clipped, far(row.let_in), far(row.clipped_from),
        row.rejected, far(row.rejected_at), row.refused, row.held])));
    return rows.length === 0 ? null : section('What others made of each member',
        make('p', {class: 'hint'}, 'models that were clipped (mean share let in, mean distance), ' +
            'rejected (largest distance) or refused, and exchanges that were given up'),
        table('identities', withRun(['member', 'clipped', 'let in', 'distance', 'rejected',
                                     'at most', 'refused', 'given up']), rows));
}

/* How fast each peer trained, where that was measured. */
function speeds() {
    const share = v => v === null ? '–' : Number((100 * v).toPrecision(3)) + ' %';
    const tokens = runs.some(run => run.speed.some(row => row.tokens_per_s !== null));
    const rate = v => v === null ? '–' : short(v);
    const rows = runs.flatMap(run => run.speed.map(row => cells(run, [
        'peer ' + row.peer, rate(row.samples_per_s),
        ...(tokens ? [rate(row.tokens_per_s)] : []), flops(row.flop_per_s),
        share(row.mfu), seconds(row.data_wait_s), share(row.exchange_overlap),
        bytes(row.memory_bytes)])));
    return rows.length === 0 ? null : section('Speed', table('speed',
        withRun(['peer', 'samples/s', ...(tokens ? ['tokens/s'] : []),
                 'arithmetic', 'MFU', 'data wait', 'exchange overlap', 'memory']), rows));
}

/* Every kind of trace mark, counted, runs side by side. */
function outcomes() {
    const kinds = [...new Set(runs.flatMap(run => run.outcomes.map(o => o.kind)))];
    return kinds.length === 0 ? null : section('Trace marks', table('outcomes',
        ['mark', ...single.map(run => several ? run.letter : 'count')],
        kinds.map(kind => [kind, ...single.map(run =>
            (run.outcomes.find(o => o.kind === kind) || {count: 0}).count)])));
}

function note(run) {
    return !run.isCell && run.peersAll > run.peers.length ? make('p', {class: 'hint'},
        (several ? 'run ' + run.letter + ': ' : '') + 'plots show the first ' +
        run.peers.length + ' of ' + number(run.peersAll) + ' peers') : null;
}

function faults() {
    const rows = runs.flatMap(run => run.faults.map(fault => cells(run, [
        seconds(fault.time_s), fault.kind, 'peer ' + fault.peer,
        fault.other === null ? '–' : 'peer ' + fault.other,
        fault.factor === null ? '–' : '× ' + number(fault.factor)])));
    return rows.length === 0 ? null : section('Faults', table('faults',
        withRun(['at', 'fault', 'peer', 'towards', 'factor']), rows));
}

/* (initiator, incarnation, counter), as the protocol names an exchange. */
function exchangeName(event) {
    if (event.other === null || event.counter === 0) return '–';
    return [event.initiator ? event.peer : event.other, event.incarnation,
            event.counter].join(' / ');
}

function events() {
    const rows = runs.flatMap(run => run.events.map(event => cells(run, [
        seconds(event.time_s), 'peer ' + event.peer, event.kind,
        event.other === null ? '–' : 'peer ' + event.other, exchangeName(event),
        event.sum])));
    const all = runs.reduce((sum, run) => sum + run.eventsAll, 0);
    return rows.length === 0 ? null : section('Notable events',
        all > rows.length ? make('p', {class: 'hint'}, 'the first ' + rows.length +
            ' of ' + number(all)) : null,
        table('events', withRun(['at', 'peer', 'event', 'with', 'exchange',
                                 'sum of its delta']), rows));
}

function peersOf(run) {
    const peers = Number(run.facts.get('peers'));
    return run.facts.get('world') === 'train' ? 'one process'
        : number(peers) + (peers === 1 ? ' peer' : ' peers');
}

function sources() {
    return section('Experiment', runs.map(run => make('details', several ? {} :
        {open: ''}, make('summary', {}, several ? run.letter + ' · ' + title(run)
                                                : title(run)),
        make('pre', {}, run.facts.get('experiment') || ''))));
}

/* --- the page --------------------------------------------------------- */

const names = [...new Set(runs.map(run =>
    run.isCell ? run.file : run.facts.get('name') || run.file))];
if (names.length === 0) names.push('no run yet');
const cellsAll = report.comparison.cells.length, runsAll = report.comparison.runs.length;
const told = runs.length === 0 || runs.some(run => run.isCell)
    ? cellsAll + ' cells, ' + runsAll + ' runs' +
      (runs.filter(run => run.isCell).length < cellsAll - single.length
          ? ', ' + runs.length + ' drawn' : '')
    : several ? runs.length + ' runs compared'
    : [runs[0].facts.get('world'), peersOf(runs[0]),
       'seed ' + runs[0].facts.get('seed')].join(' · ');
document.title = names.join(', ') + ' – kith report';
const boxes = make('div', {class: 'charts'}, CHARTS.map(chartBox));
const legendPlace = make('div', {});
document.body.replaceChildren(
    make('header', {}, make('h1', {}, names.join(', ')),
        make('p', {class: 'hint'}, told, ' · written by ' + report.writer)),
    make('main', {}, comparison(), summary(), verdicts(),
        section('Plots', controls(), legendPlace, boxes),
        speeds(), exchanges(), identities(), faults(), outcomes(), events(), sources()));
redraw();
legendPlace.replaceWith(legend());
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
document.body.dataset.ready = 'yes';
})();
