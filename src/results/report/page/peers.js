/* The graph of peers at a moment, and who exchanged with whom as a matrix.
 *
 * Up to 1000 peers are a node each, beyond that a node is a region of
 * neighbouring ranks; the matrix has up to 64 rows. Exchanges come from the
 * marks of a run. The bytes of a link are its peer's, shared out by exchanges,
 * for a run does not count them by link. */
const SIZE = 460;

/* On a circle; many of them on a circle of circles, neighbours by rank beside
 * each other. -> [[x, y, radius], ...], the same list for the same count. */
const layouts = new Map();
function layout(count) {
    if (!layouts.has(count)) layouts.set(count, makeLayout(count));
    return layouts.get(count);
}

function makeLayout(count) {
    const middle = SIZE / 2, all = [];
    const ring = (n, x, y, r, size) => {
        for (let i = 0; i < n; i++) {
            const angle = 2 * Math.PI * i / n - Math.PI / 2;
            all.push([x + r * Math.cos(angle), y + r * Math.sin(angle), size]);
        }
    };
    if (count <= 64) {
        ring(count, middle, middle, count > 1 ? middle - 26 : 0, count <= 32 ? 13 : 8);
        return all;
    }
    const groups = Math.ceil(Math.sqrt(count)), each = Math.ceil(count / groups);
    const outer = middle * 0.82, inner = Math.min(0.16 * middle, Math.PI * outer / groups * 0.8);
    for (let group = 0; group * each < count; group++) {
        const angle = 2 * Math.PI * group / Math.ceil(count / each) - Math.PI / 2;
        ring(Math.min(each, count - group * each), middle + outer * Math.cos(angle),
             middle + outer * Math.sin(angle), inner, Math.max(1.5, 2.4 * inner / each));
    }
    return all;
}

/* Near the mean blue, far from it red, by shares of a range. */
const HEAT = Array.from({length: 128}, (_, level) => {
    const stops = [[44, 123, 182], [171, 217, 233], [253, 174, 97], [215, 25, 28]];
    const at = level / 127 * (stops.length - 1), i = Math.min(stops.length - 2, Math.floor(at));
    return 'rgb(' + stops[i].map((v, k) => Math.round(v + (at - i) * (stops[i + 1][k] - v))).join(',') + ')';
});
const heat = share => HEAT[Math.round(127 * Math.max(0, Math.min(1, share)))];

function nameOfNode(run, node, of = run.graph.nodes) {
    const first = Math.ceil(node * run.graph.ranks / of), last = Math.ceil((node + 1) * run.graph.ranks / of) - 1;
    return first >= last ? 'peer ' + first : 'peers ' + first + '–' + last;
}

/* What nodes were at the end of each slot, carried forward: states[slot][node] */
function statesOf(run) {
    if (run.states) return run.states;
    const states = run.states = [];
    let at = 0, state = new Array(run.graph.nodes).fill(null);
    for (let slot = 0; slot < run.graph.slots; slot++) {
        state = state.slice();
        for (; at < run.nodesInTime.length && run.nodesInTime[at].slot <= slot; at++)
            state[run.nodesInTime[at].node] = {...run.nodesInTime[at],
                square: run.nodesInTime[at].square ?? state[run.nodesInTime[at].node]?.square};
        states.push(state);
    }
    return states;
}

/* Distances of the whole run as shares of their range, by their logarithms where
 * they span decades. */
function distanceScale(run) {
    if (run.scale) return run.scale;
    const all = run.nodesInTime.filter(row => row.square > 0).map(row => Math.sqrt(row.square));
    const low = all.reduce((a, b) => Math.min(a, b), Infinity), high = all.reduce((a, b) => Math.max(a, b), 0);
    const log = high > 30 * low, on = v => log ? Math.log(v) : v, from = log ? low : 0;
    return run.scale = {low: from, high, log, share: v => v <= from ? 0 : (on(v) - on(from)) / (on(high) - on(from) || 1),
            known: all.length > 0};
}

/* Links of a slot, or of all (null): {a, b, done, failed}, a direction each. The
 * rows of a slot are found once, for a slider asks for one after another. */
const bySlot = new WeakMap();
function linksOf(rows, slot) {
    if (!bySlot.has(rows)) {
        const slots = new Map();
        for (const row of rows) slots.get(row.slot)?.push(row) ?? slots.set(row.slot, [row]);
        bySlot.set(rows, slots);
    }
    const links = new Map();
    for (const row of slot === null ? rows : bySlot.get(rows).get(slot) || []) {
        const key = row.node * 65536 + row.towards;
        const link = links.get(key) || {a: row.node, b: row.towards, done: 0, failed: 0};
        link.done += row.done;
        link.failed += row.failed;
        links.set(key, link);
    }
    return [...links.values()];
}

/* Bytes of an exchange, as its peer or group sent them. */
function bytesOfExchange(run) {
    const {nodes, groups} = run.graph, done = new Array(groups).fill(0), sent = new Array(groups).fill(0);
    for (const row of run.traffic) done[row.node] += row.done;
    const last = statesOf(run).at(-1) || [];
    last.forEach((state, node) => {
        if (state && state.bytes) sent[Math.floor(node * groups / nodes)] += state.bytes;
    });
    return done.map((count, group) => count > 0 ? sent[group] / count : 0);
}

/* What is looked at: a run, a slot or null for the whole run, bytes or failures. */
function moment(run, slot, mode) {
    const {nodes, groups, slots} = run.graph, each = bytesOfExchange(run);
    const bytesOf = (link, of) => link.done * each[Math.floor(link.a * groups / of)];
    const coarse = linksOf(run.traffic, slot).map(link => ({...link, bytes: bytesOf(link, groups)}));
    const fine = nodes > groups ? linksOf(run.pairs, slot === null ? -1 : slot).map(link => ({...link, bytes: bytesOf(link, nodes)})) : coarse;
    /* As report.sql divides it. */
    const end = run.end ??= [run.spread, ...run.series.values()].reduce((most, rows) =>
        Math.max(most, rows.length > 0 ? rows.at(-1).time_s : 0), 0);
    const from = slot === null ? 0 : end * slot / slots, to = slot === null ? end : end * (slot + 1) / slots;
    const struck = slot === null ? [] : run.intervals.filter(one =>
        one.from < to && (one.to === null || one.to > from));
    return {run, slot, mode, coarse, fine, from, to, struck, scale: distanceScale(run),
            state: statesOf(run)[slot === null ? slots - 1 : slot]};
}

const linkValue = (moment, link) => moment.mode === 'bytes' ? link.bytes : link.failed;
const linkText = (moment, link, of) => nameOfNode(moment.run, link.a, of) + ' → ' + nameOfNode(moment.run, link.b, of) +
    ': ' + number(link.done) + ' exchanges done, ' + number(link.failed) + ' failed, about ' + bytes(link.bytes);

/* Nodes that are down, and links that are cut, at that moment: hints by node. */
function struckNodes({run, struck}) {
    const down = new Map(), cut = [], {nodes, ranks} = run.graph;
    const nodeOf = peer => Math.floor(peer * nodes / ranks);
    for (const one of struck) for (const [peer, other] of one.whom) {
        if (one.kind === 'cut') cut.push([nodeOf(peer), nodeOf(other)]);
        else down.set(nodeOf(peer), (down.get(nodeOf(peer)) || '') + '; ' + one.kind + ' from ' + seconds(one.from) +
            (one.to === null ? ' on' : ' to ' + seconds(one.to)));
    }
    return {down, cut};
}

function drawGraph(pen, now, ink) {
    const places = layout(now.run.graph.nodes), {down, cut} = struckNodes(now);
    const most = now.fine.reduce((a, link) => Math.max(a, linkValue(now, link)), 0);
    const tint = now.mode === 'bytes' ? '#4a86b8' : '#c62828';
    for (const link of now.fine) {
        const share = most > 0 ? linkValue(now, link) / most : 0;
        if (link.a === link.b || share === 0) continue;
        const [a, b] = [places[link.a], places[link.b]];
        const crowd = Math.min(1, 60 / Math.sqrt(now.fine.length + 1) / 4);
        pen.path([a, b], {stroke: tint, width: 0.5 + 2.5 * share * crowd, opacity: (0.1 + 0.6 * share) * Math.max(0.35, crowd)},
                 false, now.fine.length <= 600 ? () => linkText(now, link, now.run.graph.nodes) : null);
    }
    for (const [a, b] of cut.slice(0, 2000))
        pen.path([places[a], places[b]], {stroke: FAULT_COLOURS.cut, width: 1, dash: [2, 4], opacity: 0.8});
    places.forEach(([x, y, r], node) => {
        const state = now.state[node], distance = state && !absent(state.square) ? Math.sqrt(state.square) : null;
        const hint = () => nameOfNode(now.run, node) + (distance === null ? '' : ': |x − mean| ' + number(distance)) +
            (state && !absent(state.bytes) ? ', ' + bytes(state.bytes) + ' sent, ' + number(state.done) + ' exchanges done, ' + number(state.failed) + ' failed' : '') +
            (down.get(node) || '');
        pen.dot(x, y, r, {fill: distance === null ? '#9aa5ad' : heat(now.scale.share(distance)),
            ...(down.has(node) ? {stroke: '#c62828', width: Math.min(3, r)} : r > 4 ? {stroke: ink, width: 0.6} : {})}, hint);
        if (r >= 8 && now.run.graph.nodes === now.run.graph.ranks)
            pen.text(x, y + 3.5, String(node), {size: 10, anchor: 'middle', fill: distance === null ||
                Math.abs(now.scale.share(distance) - 0.5) < 0.3 ? '#1c2329' : '#ffffff', weight: 'bold'});
    });
}

function drawMatrix(pen, now, left, ink) {
    const {groups} = now.run.graph, top = 30, cell = (SIZE - 60) / groups;
    const most = now.coarse.reduce((a, link) => Math.max(a, linkValue(now, link)), 0);
    pen.rect(left, top, cell * groups, cell * groups, {stroke: ink, width: 0.5, opacity: 0.5});
    for (const link of now.coarse) if (linkValue(now, link) > 0)
        pen.rect(left + link.b * cell, top + link.a * cell, Math.max(1, cell - 0.5), Math.max(1, cell - 0.5),
                 {fill: now.mode === 'bytes' ? '#2b7bb9' : '#c62828', opacity: 0.12 + 0.88 * linkValue(now, link) / most},
                 () => linkText(now, link, groups));
    const every = Math.ceil(groups / 16);
    for (let i = 0; i < groups; i += every) {
        const first = Math.ceil(i * now.run.graph.ranks / groups);
        pen.text(left - 4, top + (i + 0.5) * cell + 3.5, String(first), {size: 10, fill: ink, anchor: 'end'});
        pen.text(left + (i + 0.5) * cell, top - 5, String(first), {size: 10, fill: ink, anchor: 'middle'});
    }
    const what = now.mode === 'bytes' ? 'bytes' : 'failed exchanges';
    pen.text(left, 12, 'from (row) to (column), ' + what + (most === 0 ? ': none'
        : ': at most ' + (now.mode === 'bytes' ? bytes(most) : number(most))), {size: 11, fill: ink});
}

/* Which colour is which distance. */
function drawScale(pen, now, top, ink) {
    const {scale} = now;
    if (!scale.known) return;
    for (let i = 0; i < 40; i++) pen.rect(120 + 5 * i, top, 5.2, 9, {fill: heat(i / 39)});
    pen.text(114, top + 9, number(Number(scale.low.toPrecision(3))), {size: 11, fill: ink, anchor: 'end'});
    pen.text(326, top + 9, number(Number(scale.high.toPrecision(3))) + '  |x − mean|' + (scale.log ? ', log' : ''), {size: 11, fill: ink});
}

function peersPicture(now, light) {
    const ink = light ? PAPER.ink : colour('--ink');
    const labels = [['from', 'to', 'exchanges', 'failed', 'bytes']];
    return {name: 'peers', width: 2 * SIZE + 50, height: SIZE + 22,
        draw: pen => {
            if (light) pen.rect(0, 0, 2 * SIZE + 50, SIZE + 22, {fill: PAPER.paper});
            drawGraph(pen, now, ink);
            drawScale(pen, now, SIZE + 8, ink);
            drawMatrix(pen, now, SIZE + 50, ink);
        },
        points: () => [...labels, ...now.coarse.map(link => [nameOfNode(now.run, link.a, now.run.graph.groups),
            nameOfNode(now.run, link.b, now.run.graph.groups), link.done, link.failed, Math.round(link.bytes)])]};
}

/* On the screen graph and matrix are two, so that a phone has one below the
 * other; of many peers as pixels, which follow the slider where thousands of
 * elements do not. */
function showMoment(now, place) {
    const many = now.run.graph.nodes > 64, scale = Math.min(2, Math.ceil(devicePixelRatio));
    const pen = many ? () => canvasPen(SIZE, SIZE + 22, scale) : () => svgPen(SIZE, SIZE + 22);
    if (!many || !place.pens || !place.pens[0].clear) place.pens = [pen(), pen()];
    const ink = colour('--ink'), [graph, matrix] = place.pens;
    if (many) place.pens.forEach(one => one.clear());
    drawGraph(graph, now, ink);
    drawScale(graph, now, SIZE + 8, ink);
    drawMatrix(matrix, now, 40, ink);
    graph.root.setAttribute('id', 'graph');
    matrix.root.setAttribute('id', 'matrix');
    if (place.firstChild !== graph.root) place.replaceChildren(graph.root, matrix.root);
}

function tellMoment(now) {
    const when = now.slot === null ? 'whole run, nodes as they were at its end'
        : seconds(now.from) + ' to ' + seconds(now.to);
    return [when, now.struck.map(one => [make('br', {}), tellInterval(now.run, one)])];
}

function peersSection() {
    const able = single.filter(run => run.graph && run.graph.ranks > 1 && run.nodesInTime.length + run.traffic.length > 0);
    if (able.length === 0) return null;
    const first = Math.floor(kept.slot ?? Number(asked.get('slot'))) || 0; /* 0: the whole run */
    const seen = {run: able[0], slot: first > 0 && first <= able[0].graph.slots ? first - 1 : null,
                  mode: kept.mode ?? (asked.has('failures') ? 'failures' : 'bytes')};
    const place = make('div', {class: 'peers'}), told = make('p', {class: 'hint', id: 'moment'});
    const slider = make('input', {type: 'range', min: 0, max: able[0].graph.slots,
        value: seen.slot === null ? 0 : seen.slot + 1, id: 'slot', 'aria-label': 'moment of the run'});
    const now = () => moment(seen.run, seen.slot, seen.mode);
    const fill = () => {
        slider.max = seen.run.graph.slots > 1 ? seen.run.graph.slots : 0;
        slider.parentElement.hidden = seen.run.graph.slots < 2;
        kept.slot = seen.slot === null ? 0 : seen.slot + 1;
        kept.mode = seen.mode;
        const seenNow = now();
        showMoment(seenNow, place);
        told.replaceChildren(...tellMoment(seenNow).flat(Infinity));
    };
    let due = 0; /* Once a frame, however many events come. */
    slider.addEventListener('input', () => {
        seen.slot = Number(slider.value) === 0 ? null : Number(slider.value) - 1;
        cancelAnimationFrame(due);
        due = requestAnimationFrame(fill);
    });
    const runChoice = able.length < 2 ? null : make('select', {onchange: event => {
        Object.assign(seen, {run: able[event.target.value], slot: null});
        slider.value = 0;
        fill();
    }}, able.map((run, at) => make('option', {value: at}, run.letter + ' · ' + title(run))));
    const {graph} = seen.run;
    const result = section('Peers', make('div', {class: 'controls'}, runChoice,
        make('span', {class: 'group'}, make('span', {class: 'name'}, 'Links by'),
            choice('links', 'bytes', 'bytes', seen.mode === 'bytes', mode => { seen.mode = mode; fill(); }),
            choice('links', 'failures', 'failures', seen.mode === 'failures', mode => { seen.mode = mode; fill(); })),
        make('label', {class: 'group moment'}, 'whole run ', slider, ' moments'),
        saving(() => peersPicture(now(), true))), told, place,
        make('p', {class: 'hint'}, 'colour: distance from the mean; red ring: down or slow; dashed: cut. ' +
            'Bytes of a link are its peer\'s, shared out by exchanges. ' +
            (graph.nodes < graph.ranks ? number(graph.ranks) + ' peers in ' + graph.nodes + ' regions of neighbouring ranks. '
             : graph.nodes > graph.groups ? 'At most ' + number(graph.links) + ' links, those with most failures and exchanges; the matrix, in ' +
               graph.groups + ' regions of neighbouring ranks, has all. ' : '')));
    soon(fill);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', fill, {signal: kept.signal});
    return result;
}
