/* The plots: dygraphs draws the curves and follows the pointer, lanes of faults
 * stand below on the same axis. */
const FAULT_COLOURS = {crash: '#c62828', pause: '#ef6c00', slow: '#8e24aa', cut: '#8d6e63'};
const plots = []; /* {chart, box, graph, lines, ticks} */
let syncing = false;

/* Kinds that are not shown are not given to dygraphs: a thousand rows of many
 * peers cost it as much hidden as drawn. */
const wanted = line => ({averaged: view.averaged, mean: view.band, peer: view.peers})[line.kind];
const visible = line => !view.hidden.has(line.name);

/* Peers of one run alone get their own hues, neighbours in hue apart in
 * lightness; of several runs, the run's. */
function shade(line) {
    if (compared || line.run.isCell) return line.run.colour + '66';
    const at = line.run.peers.indexOf(line.peer);
    return 'hsl(' + Math.round(360 * at / line.run.peers.length) + (at % 2 ? ' 60% 64%)' : ' 50% 45%)');
}

/* As a pen wants it. A mean of peers is dashed, the averaged model is not. */
function styleOf(line) {
    const peer = line.kind === 'peer';
    return {stroke: peer ? shade(line) : line.run.colour, width: peer ? 1 : line.kind === 'mean' ? 1.5 : 2.5,
            dash: line.peer === 'mean' && !line.run.isCell ? [7, 3] : null};
}

const banded = line => view.band && line.points[0].length > 2;

const NOTHING = [null, null, null];

/* dygraphs wants one matrix: an abscissa and [low, value, high] of each line. */
function matrix(lines) {
    const rows = new Map(), empty = () => new Array(lines.length).fill(null);
    lines.forEach((line, column) => {
        for (const [x, y, low, high] of line.points) {
            if (!rows.has(x)) rows.set(x, empty());
            rows.get(x)[column] = banded(line) ? [low, y, high] : [y, y, y];
        }
    });
    /* Every plot starts at 0, so that a run with one row is one too. */
    if (!view.log && !rows.has(0)) rows.set(0, empty());
    return [...rows.entries()].sort((a, b) => a[0] - b[0])
        .map(([x, values]) => [x, ...values.map(value => value || NOTHING)]);
}

function showValues(entry, x, points, name) {
    const format = entry.chart.format || number, axis = AXES[view.x];
    const lineOf = point => entry.lines.find(line => line.name === point.name);
    entry.values.replaceChildren(
        make('span', {class: 'at'}, axis.format(x), axis.unit),
        ...points.filter(point => Number.isFinite(point.yval) &&
            (point.name === name || lineOf(point).kind !== 'peer')).slice(0, 12).map(point =>
            make('span', {}, make('i', {class: 'chip', style:
                {background: styleOf(lineOf(point)).stroke}}), point.name, ' ',
                make('b', {}, format(point.yval)))));
}

/* --- lanes of faults --------------------------------------------------- */

const BARS_MAX = 200;

/* The bars of a row, those that overlap as one. */
function joinedBars(bars) {
    const all = [];
    for (const bar of [...bars].sort((a, b) => a.from - b.from)) {
        const last = all.at(-1);
        if (last === undefined || bar.from > last.to) all.push({...bar, count: 1, ends: [bar.to], most: 1});
        else {
            last.ends = [...last.ends.filter(end => end > bar.from), bar.to];
            Object.assign(last, {count: last.count + 1, to: Math.max(last.to, bar.to), most: Math.max(last.most, last.ends.length)});
        }
    }
    return all.map(bar => bar.count === 1 ? bar : {...bar,
        hint: bar.kind + ', ' + number(bar.count) + ' times, of ' + number(bar.most) + ' at once at most'});
}

/* {rows: [kind, ...], bars: [{row, kind, from, to, hint, colour}]} on the axis
 * drawn; a fault that never ended reaches to the end. */
function faultLanes() {
    const all = single.flatMap(run => run.intervals.map(one => ({run, one})));
    const rows = [...new Set(all.map(({one}) => one.kind))].slice(0, 6);
    const bars = all.filter(({one}) => rows.includes(one.kind)).map(({run, one}) => ({
        row: rows.indexOf(one.kind), kind: one.kind, from: onAxis(run, one.from),
        to: one.to === null ? Infinity : onAxis(run, one.to), hint: tellInterval(run, one),
        colour: FAULT_COLOURS[one.kind] || '#555555'})).filter(bar => bar.from !== null);
    return {rows, bars: bars.length <= BARS_MAX ? bars : rows.flatMap((kind, row) => joinedBars(bars.filter(bar => bar.row === row)))};
}

function drawLanes(pen, lanes, x, left, right, top, ink) {
    lanes.rows.forEach((kind, row) => {
        pen.path([[left, top + 13 * row + 6], [right, top + 13 * row + 6]], {stroke: ink, width: 1, opacity: 0.25});
        pen.text(left - 6, top + 13 * row + 10, kind.slice(0, 10), {size: 10, fill: ink, anchor: 'end'});
    });
    for (const bar of lanes.bars) {
        const at = Math.max(left, x(bar.from)), end = Math.min(right, bar.to === Infinity ? right : x(bar.to));
        if (at <= right && end >= left)
            pen.rect(at, top + 13 * bar.row + 1, Math.max(3, end - at), 10, {fill: bar.colour, opacity: 0.8}, () => bar.hint);
    }
}

function showLanes(entry, lanes) {
    const area = entry.graph.getArea(), width = entry.plot.clientWidth;
    if (lanes.rows.length === 0) return;
    const pen = svgPen(width, 13 * lanes.rows.length + 2);
    drawLanes(pen, lanes, v => v <= 0 && view.log ? area.x : entry.graph.toDomXCoord(v),
              area.x, area.x + area.w, 0, colour('--quiet'));
    entry.lane.replaceChildren(pen.root);
}

/* A faint line where a fault begins, so that the eye finds it in the curves;
 * none where there are so many that they would hide them. */
function drawMarks(lanes) {
    return (canvas, area, graph) => {
        canvas.save();
        canvas.setLineDash([2, 4]);
        canvas.globalAlpha = 0.45;
        for (const bar of lanes.bars.length > BARS_MAX ? [] : lanes.bars) {
            const at = Math.round(graph.toDomXCoord(bar.from)) + 0.5;
            if (!(at > area.x && at < area.x + area.w)) continue;
            canvas.strokeStyle = bar.colour;
            canvas.beginPath();
            canvas.moveTo(at, area.y);
            canvas.lineTo(at, area.y + area.h);
            canvas.stroke();
        }
        canvas.restore();
    };
}

/* Lines whose last point alone is of the whole test set. */
function endsInAll(entry) {
    return !['accuracy', 'test_loss'].includes(entry.chart.key) ? [] : entry.lines.filter(line =>
        line.kind !== 'peer' && line.run.part.rows > 0 && line.run.part.rows < line.run.part.all && line.points.length > 1);
}

/* A jump at the end is no change of the model. */
function partText(entry) {
    const parts = [...new Set(endsInAll(entry).map(({run: {part}}) =>
        'on the way on the same ' + number(part.rows) + ' rows of the test set, at the ring on all ' + number(part.all)))];
    return parts.length === 0 ? '' : parts.slice(0, 3).join('; ');
}

/* --- one plot ---------------------------------------------------------- */

/* dygraphs' own ticks, kept for the picture. */
function ticker(entry, name) {
    return (a, b, pixels, options, graph, values) => {
        entry.ticks[name] = Dygraph.numericTicks(a, b, pixels, options, graph, values);
        return entry.ticks[name];
    };
}

/* Under the curves: begins of faults, and rings at the points of all rows. */
function underlay(entry, lanes) {
    const marks = drawMarks(lanes);
    return (canvas, area, graph) => {
        marks(canvas, area, graph);
        for (const line of endsInAll(entry).filter(visible)) {
            const [x, y] = graph.toDomCoords(...line.points.at(-1).slice(0, 2));
            canvas.strokeStyle = styleOf(line).stroke;
            canvas.lineWidth = 1.5;
            canvas.beginPath();
            canvas.arc(x, y, 6, 0, 2 * Math.PI);
            canvas.stroke();
        }
    };
}

function optionsOf(entry, lanes) {
    const {chart, lines} = entry;
    const look = line => ({color: styleOf(line).stroke, strokeWidth: styleOf(line).width,
        strokePattern: styleOf(line).dash, drawPoints: line.points.length < 2, pointSize: 4});
    return {
        dateWindow: kept.window || null,
        labels: ['x', ...lines.map(line => line.name)],
        series: Object.fromEntries(lines.map(line => [line.name, look(line)])),
        visibility: lines.map(visible), legend: 'never', connectSeparatedPoints: true,
        customBars: true, fillAlpha: 0.15, logscale: entry.positive && entry.logBox.checked,
        highlightSeriesOpts: {strokeWidth: 3}, highlightSeriesBackgroundAlpha: 1,
        gridLineColor: colour('--grid'), axisLineColor: colour('--quiet'),
        axisLabelFontSize: 12, rightGap: 12, axisLabelWidth: 62,
        xRangePad: view.log ? 0 : 4, /* in even pixels it would reach below 0 */
        axes: {x: {valueFormatter: number, axisLabelWidth: 64, pixelsPerLabel: 48, logscale: view.log,
                   axisLabelFormatter: v => AXES[view.x].tick(v), ticker: ticker(entry, 'x')},
               y: {axisLabelFormatter: v => (chart.axis || short)(v), ticker: ticker(entry, 'y')}},
        underlayCallback: underlay(entry, lanes),
        highlightCallback: (event, x, points, row, name) => showValues(entry, x, points, name),
        unhighlightCallback: () => entry.values.replaceChildren(),
        drawCallback: (graph, initial) => {
            if (!initial) showLanes(entry, lanes);
            if (syncing || initial) return;
            kept.window = graph.isZoomed('x') ? graph.xAxisRange() : null;
            syncing = true;
            for (const other of plots) if (other.graph && other.graph !== graph)
                other.graph.updateOptions(graph.isZoomed('x')
                    ? {dateWindow: graph.xAxisRange()} : {dateWindow: null});
            syncing = false;
        },
    };
}

/* What a plot is to show; build() shows it. */
function prepare(entry) {
    entry.all = linesOf(entry.chart);
    entry.lines = entry.all.filter(wanted);
    entry.box.hidden = entry.lines.every(line => line.points.every(p => p[1] === 0));
    if (entry.graph) { entry.graph.destroy(); entry.graph = null; }
    entry.due = false;
    if (entry.box.hidden) return;
    const values = entry.lines.flatMap(line => line.points.map(p => p[1]));
    entry.positive = values.every(v => v > 0);
    entry.logBox.parentElement.hidden = !entry.positive;
    /* What diverged would flatten all the others; distances span decades. */
    const chosen = (kept.logs ??= {})[entry.chart.key];
    if (chosen !== undefined) entry.logBox.checked = chosen;
    else if (entry.positive && !entry.drawn) {
        const most = values.reduce((a, b) => Math.max(a, b)), least = values.reduce((a, b) => Math.min(a, b));
        entry.logBox.checked = most > 1000 * least && ['loss', 'test_loss', 'consensus_distance'].includes(entry.chart.key);
    }
    entry.drawn = entry.due = true;
    entry.part.replaceChildren(partText(entry));
}

function build(entry) {
    if (!entry.due) return;
    entry.due = false;
    const lanes = faultLanes();
    entry.graph = new Dygraph(entry.plot, matrix(entry.lines), optionsOf(entry, lanes));
    showLanes(entry, lanes);
    entry.box.dataset.lines = entry.lines.length;
}

/* What is on the screen now, for picture.js. */
function pictureOf(entry, width = 720) {
    build(entry);
    const shown = entry.lines.filter(visible), {graph, chart} = entry;
    const name = chart.key + '-by-' + view.x;
    const own = line => banded(line) ? line : {...line, points: line.points.map(p => p.slice(0, 2))};
    const rows = shown.map(own).flatMap(line => line.points.map(([x, y, low, high]) =>
        [line.name, x, y, low ?? '', high ?? '']));
    return plotPicture({name, title: chart.title, unit: chart.unit, xTitle: AXES[view.x].label + (view.smooth ? ', smoothed' : ''),
        x: {range: graph.xAxisRange(), log: view.log, ticks: entry.ticks.x},
        y: {range: graph.yAxisRange(0), log: entry.positive && entry.logBox.checked, ticks: entry.ticks.y},
        lines: shown.map(line => ({...own(line), style: styleOf(line), ring: endsInAll(entry).includes(line)})), lanes: faultLanes(),
        legend: shown.filter(line => line.kind !== 'peer' || shown.length <= 12).slice(0, 18)
            .map(line => ({name: line.name, style: styleOf(line)})),
        points: [['line', view.x, chart.key, 'low', 'high'], ...rows]}, width);
}

function plotBox(chart) {
    const entry = {chart, graph: null, all: [], lines: [], ticks: {}};
    entry.logBox = make('input', {type: 'checkbox'});
    entry.logBox.addEventListener('change', () => {
        kept.logs[chart.key] = entry.logBox.checked;
        if (entry.graph) entry.graph.updateOptions({logscale: entry.logBox.checked});
    });
    entry.plot = make('div', {class: 'plot'});
    entry.lane = make('div', {class: 'lane'});
    entry.print = make('div', {class: 'print'});
    entry.part = make('p', {class: 'hint part'});
    entry.values = make('div', {class: 'values'});
    entry.box = make('section', {class: 'chart', id: 'chart-' + chart.key},
        make('h3', {}, term(chart.title), make('small', {}, ' ' + chart.unit)),
        make('div', {class: 'tools'}, entry.values, make('label', {class: 'log'}, entry.logBox, 'log'),
             saving(() => pictureOf(entry))),
        entry.plot, entry.lane, entry.print, entry.part);
    plots.push(entry);
    return entry.box;
}

function onScreen(element) {
    const {top, bottom} = element.getBoundingClientRect();
    return bottom > 0 && top < innerHeight;
}

function redraw() {
    plots.forEach(prepare);
    const seen = plots.filter(entry => entry.due && onScreen(entry.box));
    seen.forEach(build);
    for (const entry of plots) if (entry.due) soon(() => build(entry));
}

function restyle() {
    for (const entry of plots) if (entry.graph)
        entry.graph.updateOptions({visibility: entry.lines.map(visible)});
}

/* Paper gets the picture, which is as sharp as its printer. */
addEventListener('beforeprint', () => {
    workOffAll();
    for (const entry of plots) if (entry.graph) {
        const picture = pictureOf(entry, 430), pen = svgPen(picture.width, picture.height);
        picture.draw(pen);
        entry.print.replaceChildren(pen.root);
    }
}, {signal: kept.signal});
addEventListener('afterprint', () => plots.forEach(entry => entry.print.replaceChildren()), {signal: kept.signal});

/* --- controls ---------------------------------------------------------- */

function legend() {
    const names = new Map();
    /* Seeds follow the tick; so many would hide the cells. */
    for (const entry of plots) for (const line of entry.all)
        if (!names.has(line.name) && !(line.kind === 'peer' && (line.run.isCell || line.run.peers.length > 16)))
            names.set(line.name, line);
    const rank = {averaged: 0, mean: 1, peer: 2};
    return make('div', {class: 'legend'}, [...names.values()].sort((a, b) =>
        rank[a.kind] - rank[b.kind]).map(line => {
        const button = make('button', {type: 'button', 'aria-pressed': String(visible(line)),
            title: 'show or hide'}, make('i', {class: line.kind === 'mean' ? 'chip ring' : 'chip',
            style: {background: styleOf(line).stroke, borderColor: styleOf(line).stroke}}), line.name);
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
    const set = (key, value) => {
        if (key === 'x' || key === 'log') kept.window = null;
        view[key] = value;
        redraw();
    };
    const group = (name, ...inside) => make('span', {class: 'group'}, make('span', {class: 'name'}, name), inside);
    const cells = settings.every(run => run.isCell);
    return make('div', {class: 'controls'},
        group('Against', Object.keys(AXES).filter(offered).map(axis =>
            choice('x', axis, term(AXES[axis].label), view.x === axis, x => set('x', x)))),
        group('Axis', tick('log', view.log, on => set('log', on), 'log-x')),
        group('Smooth', make('select', {id: 'smooth', onchange: event => set('smooth', Number(event.target.value))},
            [[0, 'no'], [2, '5 points'], [5, '11 points'], [12, '25 points']].map(([value, label]) =>
                make('option', {value, ...(value === view.smooth ? {selected: ''} : {})}, label)))),
        group('Show', tick(cells ? 'mean of seeds' : 'averaged model', view.averaged, on => set('averaged', on)),
            tick(term('band'), view.band, on => set('band', on), 'band'),
            tick(cells ? 'each seed' : settings.some(run => run.isCell) ? 'each peer or seed' : 'each peer',
                 view.peers, on => { view.peersChosen = true; set('peers', on); }, 'each')),
        make('span', {class: 'hint'}, 'drag to zoom, double click to go back, shift-drag to pan'));
}
