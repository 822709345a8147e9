/* The graph of peers at a moment, and who exchanged with whom as a matrix.
 *
 * Up to 1000 peers are a node each, beyond that a node is a place on a map, or
 * where a run has no zones a region of neighbouring ranks; the matrix has up to
 * 64 rows. Exchanges come from the marks of a run. The bytes of a link are its
 * peer's, shared out by exchanges, for a run does not count them by link; what
 * goes from place to place was counted, of all peers. */
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

/* Places in the plane, to scale, then away from under each other. */
function mapLayout(places) {
    const margin = 34, wide = SIZE - 2 * margin, range = key => {
        const all = places.map(place => place[key]);
        return [Math.min(...all), Math.max(...all)];
    };
    const [left, right] = range('x'), [low, high] = range('y'), mean = places.reduce((sum, one) => sum + one.peers, 0) / places.length;
    const scale = wide / Math.max(right - left, high - low, 1e-9);
    const all = places.map(({x, y, peers}) => [SIZE / 2 + (x - (left + right) / 2) * scale,
        SIZE / 2 - (y - (low + high) / 2) * scale, Math.max(5, Math.min(14, 8.5 * Math.sqrt(peers / mean)))]);
    for (let round = 0; round < 100; round++) all.forEach((a, i) => all.slice(0, i).forEach((b, j) => {
        const dx = a[0] - b[0], dy = a[1] - b[1], apart = Math.hypot(dx, dy), over = a[2] + b[2] + 3 - apart;
        if (over <= 0) return;
        const [ux, uy] = apart > 1e-6 ? [dx / apart, dy / apart] : [Math.cos(i + j), Math.sin(i + j)];
        a[0] += ux * over / 2; a[1] += uy * over / 2;
        b[0] -= ux * over / 2; b[1] -= uy * over / 2;
    }));
    return all.map(([x, y, r]) => [Math.max(r, Math.min(SIZE - r, x)), Math.max(r, Math.min(SIZE - r, y)), r]);
}

const isMap = run => run.places.length > 0;
const layoutOf = run => run.layout ??= isMap(run) && run.places.every(one => Number.isFinite(one.x) && Number.isFinite(one.y))
    ? mapLayout(run.places) : layout(run.graph.nodes);

/* Of which node a peer is: its zone's. */
function nodeOf(run, peer) {
    const {zones, graph: {nodes, ranks}} = run;
    if (!isMap(run)) return Math.floor(peer * nodes / ranks);
    if (zones.length === 0) return 0;
    return (absent(zones[0].first) ? zones[peer % zones.length] : zones.findLast(one => one.first <= peer) || zones[0]).node;
}

/* Near the mean blue, far from it red, by shares of a range. */
const HEAT = Array.from({length: 128}, (_, level) => {
    const stops = [[44, 123, 182], [171, 217, 233], [253, 174, 97], [215, 25, 28]];
    const at = level / 127 * (stops.length - 1), i = Math.min(stops.length - 2, Math.floor(at));
    return 'rgb(' + stops[i].map((v, k) => Math.round(v + (at - i) * (stops[i + 1][k] - v))).join(',') + ')';
});
const heat = share => HEAT[Math.round(127 * Math.max(0, Math.min(1, share)))];

function nameOfNode(run, node, of = run.graph.nodes) {
    if (isMap(run)) return run.places[node] ? run.places[node].name + ' (' + number(run.places[node].peers) + ' peers)' : 'nowhere';
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
        const link = links.get(key) || {a: row.node, b: row.towards, done: 0, failed: 0, bytes: 0};
        link.bytes += row.bytes || 0;
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
    const bytesOf = (link, of) => isMap(run) ? link.bytes : link.done * each[Math.floor(link.a * groups / of)];
    const coarse = linksOf(run.traffic, slot).map(link => ({...link, bytes: bytesOf(link, groups)}));
    const fine = nodes > groups ? linksOf(run.pairs, slot === null ? -1 : slot).map(link => ({...link, bytes: bytesOf(link, nodes)})) : coarse;
    /* As report.sql divides it. */
    const end = run.end ??= [run.spread, ...run.series.values()].reduce((most, rows) =>
        Math.max(most, rows.length > 0 ? rows.at(-1).time_s : 0), 0);
    const each_s = run.graph.slot_s ?? end / slots;
    const from = slot === null ? 0 : each_s * slot, to = slot === null ? end : Math.min(end, each_s * (slot + 1));
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
    const down = new Map(), cut = [];
    for (const one of struck) for (const [peer, other] of one.whom) {
        const node = nodeOf(run, peer), said = down.get(node) || '';
        const told = '; ' + one.kind + ' from ' + seconds(one.from) + (one.to === null ? ' on' : ' to ' + seconds(one.to));
        /* Of many links the row has two ends alone, and each place has many peers. */
        if (one.kind === 'cut' && !(isMap(run) && one.sides)) cut.push([node, nodeOf(run, other)]);
        else if (one.kind !== 'cut' && !said.includes(told)) down.set(node, said + told);
    }
    return {down, cut};
}

function drawGraph(pen, now, ink) {
    const places = layoutOf(now.run), own = new Map(), {down, cut} = struckNodes(now);
    const most = now.fine.reduce((a, link) => Math.max(a, linkValue(now, link)), 0);
    const tint = now.mode === 'bytes' ? '#4a86b8' : '#c62828';
    for (const link of now.fine) {
        const share = most > 0 ? linkValue(now, link) / most : 0;
        if (share > 0 && isMap(now.run) && link.a === link.b) own.set(link.a, {share, link});
        if (link.a === link.b || share === 0 || !places[link.a] || !places[link.b]) continue;
        const [a, b] = [places[link.a], places[link.b]];
        const crowd = Math.min(1, 60 / Math.sqrt(now.fine.length + 1) / 4);
        pen.path([a, b], {stroke: tint, width: 0.5 + 2.5 * share * crowd, opacity: (0.1 + 0.6 * share) * Math.max(0.35, crowd)},
                 false, now.fine.length <= 600 ? () => linkText(now, link, now.run.graph.nodes) : null);
    }
    for (const [a, b] of cut.slice(0, 2000)) if (places[a] && places[b])
        pen.path([places[a], places[b]], {stroke: FAULT_COLOURS.cut, width: 1, dash: [2, 4], opacity: 0.8});
    places.forEach(([x, y, r], node) => {
        const state = now.state[node], distance = state && !absent(state.square) ? Math.sqrt(state.square) : null;
        const within = own.get(node);
        if (within) pen.dot(x, y, r + 2 + 5 * within.share, {fill: tint, opacity: 0.3 + 0.5 * within.share});
        const hint = () => nameOfNode(now.run, node) + (within ? '; ' + linkText(now, within.link, now.run.graph.nodes) : '') + (distance === null ? '' : ': |x − mean| ' + number(distance)) +
            (state && !absent(state.bytes) ? ', ' + bytes(state.bytes) + ' sent' + (isMap(now.run) ? ' by those with rows, ' : ', ') + number(state.done) + ' exchanges done, ' + number(state.failed) + ' failed' : '') +
            (down.get(node) || '');
        pen.dot(x, y, r, {fill: distance === null ? '#9aa5ad' : heat(now.scale.share(distance)),
            ...(down.has(node) ? {stroke: '#c62828', width: Math.min(3, r)} : r > 4 ? {stroke: ink, width: 0.6} : {})}, hint);
        if (r >= (isMap(now.run) ? 5 : 8) && (isMap(now.run) || now.run.graph.nodes === now.run.graph.ranks))
            pen.text(x, y + 3.5, String(node), {size: isMap(now.run) ? 9 : 10, anchor: 'middle', fill: distance === null ||
                Math.abs(now.scale.share(distance) - 0.5) < 0.3 ? '#1c2329' : '#ffffff', weight: 'bold'});
    });
}

/* Names below the nodes, or above, where they are on nothing else. */
function drawNames(pen, now, ink) {
    if (!isMap(now.run)) return;
    const places = layoutOf(now.run), taken = places.map(([x, y, r]) => [x - r, y - r, x + r, y + r]);
    const cover = ([a, b, c, d]) => a < 0 || c > SIZE || b < 0 || d > SIZE ||
        taken.some(([e, f, g, h]) => a < g && e < c && b < h && f < d);
    places.forEach(([x, y, r], node) => {
        const name = now.run.places[node].name, half = 2.6 * name.length;
        for (const base of [y + r + 10, y - r - 5]) {
            const box = [x - half, base - 8, x + half, base + 3];
            if (cover(box)) continue;
            taken.push(box);
            pen.text(x, base, name, {size: 9, anchor: 'middle', fill: ink});
            break;
        }
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
        const first = isMap(now.run) ? i : Math.ceil(i * now.run.graph.ranks / groups);
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
            drawNames(pen, now, ink);
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
    drawNames(graph, now, ink);
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
            (isMap(seen.run) ? number(graph.ranks) + ' peers in ' + seen.run.zones.length + ' zones' +
             (seen.run.zones.length > graph.nodes ? ', joined to ' + graph.nodes + ' places' : '') +
             (Number.isFinite(seen.run.places[0].x) ? '; the nearer, the shorter the latency. ' : '. ') +
             'Around a node: what stays within it. Bytes and exchanges of all peers; colours of those with rows.'
             : 'Bytes of a link are its peer\'s, shared out by exchanges. ') +
            (isMap(seen.run) ? '' : graph.nodes < graph.ranks ? number(graph.ranks) + ' peers in ' + graph.nodes + ' regions of neighbouring ranks. '
             : graph.nodes > graph.groups ? 'At most ' + number(graph.links) + ' links, those with most failures and exchanges; the matrix, in ' +
               graph.groups + ' regions of neighbouring ranks, has all. ' : '')));
    soon(fill);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', fill, {signal: kept.signal});
    return result;
}
