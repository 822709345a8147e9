/* The tables below the plots: what was reached, in numbers. Of several runs the
 * summary has what differs; the rest is a tick away. */
const ROWS_AT_ONCE = 60;
function table(id, heads, rows) {
    const line = cells => make('tr', {}, cells.map(cell => cell instanceof Node ? make('td', {}, cell)
        : make('td', typeof cell === 'number' ? {class: 'n'} : {}, typeof cell === 'number' ? number(cell) : cell ?? '–')));
    const body = make('tbody', {}, rows.slice(0, ROWS_AT_ONCE).map(line));
    for (let from = ROWS_AT_ONCE; from < rows.length; from += 100)
        soon(() => body.append(...rows.slice(from, from + 100).map(line)));
    return make('div', {class: id === 'summary' || id === 'troubles' ? 'scroll whole' : 'scroll'}, make('table', {id},
        make('thead', {}, make('tr', {}, heads.map((head, i) => make('th',
            rows.some(row => typeof row[i] === 'number') ? {class: 'n'} : {}, head)))), body));
}

function factText(key, value) {
    if (value === null || value === undefined || value === '') return '–';
    const plain = Number(value);
    if (key === 'completed') return plain ? 'yes' : 'no, interrupted';
    if (!Number.isFinite(plain) || /hash|seed|build/.test(key)) return value;
    if (/flop_per_s$/.test(key)) return flops(plain);
    if (/per_s$/.test(key)) return short(plain) + '/s';
    if (/mfu$|overlap$|utilisation$|idle_share$/.test(key)) return Number((100 * plain).toPrecision(3)) + ' %';
    if (/^accuracy(?!\.peers)/.test(key)) return (100 * plain).toFixed(2) + ' %';
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


const UNTOLD = ['experiment', 'schema', 'name', 'products', 'threads', 'peak_flop_per_s', 'zone_slot_s'];
const keyName = key => key.replace('virtual_s', 'virtual time').replace('wall_s', 'wall time')
    .replace('time_to_target_s', 'time to target loss').replace(/^faults$/, 'faults, link by link').replace(/_per_s$/, '').replace(/_s$/, '')
    .replace('exchanges.refused', 'exchanges.busy').replace('mfu', 'MFU').replace('flop', 'FLOP').replaceAll('_', ' ').replaceAll('.', ' · ');
/* Of "exchanges · torn", the part that is a term. */
const explained = name => term(name).nodeType ? term(name)
    : make('span', {}, name.split(' · ').map((part, at) => [at > 0 ? ' · ' : '', term(part)]));

function summary() {
    const runs = single, several = runs.length > 1;
    if (runs.length === 0) return null;
    const all = runs.map(run => new Map([...run.results, ...run.facts]));
    const rank = key => (ORDER.indexOf(key) + 1) || ORDER.length + 1;
    const keys = [...new Set(all.flatMap(facts => [...facts.keys()]))]
        .filter(key => !UNTOLD.includes(key) && all.some(facts => facts.get(key) !== null))
        .sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
    if (!several) return section('Summary', make('dl', {id: 'summary'},
        [...keys.map(key => [keyName(key), factText(key, all[0].get(key))]),
         ['database', runs[0].file]].map(([key, value]) => make('div', {},
            make('dt', {}, explained(key)), make('dd', {}, value)))));
    const differs = key => new Set(all.map(facts => String(facts.get(key)))).size > 1;
    const heads = ['', ...runs.map(run => make('span', {}, make('i',
        {class: 'chip', style: {background: run.colour}}), run.letter + ' · ' + title(run)))];
    const fill = chosen => table('summary', heads,
        [...chosen.map(key => [explained(keyName(key)), ...all.map(facts => factText(key, facts.get(key)))]),
         ['database', ...runs.map(run => run.file)]]);
    const place = make('div', {}, fill(keys.filter(differs)));
    const alike = keys.length - keys.filter(differs).length;
    return section('Summary', alike === 0 ? null : tick('with the ' + alike + ' rows in which all are equal', false,
        on => place.replaceChildren(fill(on ? keys : keys.filter(differs))), 'alike'), place);
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

const lineOfCell = cell => runs.find(run => run.database === cell.database && (run.cell === cell.cell || !run.isCell));

function cellName(cell) {
    const line = lineOfCell(cell);
    return make('span', {}, line ? make('i', {class: 'chip', style: {background: line.colour}}) : null,
        line && !line.isCell && several ? line.letter + ' · ' : '',
        cell.label.split(', ').map((part, at) => [at > 0 ? ', ' : '', make('span', {class: 'whole'}, part)]));
}

function comparisonTable(cells, shown) {
    const rows = cells.map(cell => make('tr', {}, make('td', {}, cellName(cell)),
        make('td', {class: 'n'}, cell.runs), shown.map(([key, , format]) =>
            make('td', {class: 'n'}, spreadText(cell[key], format, cell.runs)))));
    const keys = cells.map(cell => [cell.label, cell.runs, ...shown.map(([key]) => cell[key].mean)]);
    return sortable('comparison', ['cell', 'runs', ...shown.map(([, head]) => head)], rows, keys);
}

/* Runs that came to no good end, and cells that were refused. */
function troubles({cells, runs: all}) {
    const rows = [
        ...all.filter(run => run.state !== 'done').map(run => [run.label, 'seed ' + run.seed,
            make('span', {class: 'broken'}, run.state), run.problem]),
        ...all.filter(run => run.state === 'done' && run.violations > 0).map(run =>
            [run.label, 'seed ' + run.seed, make('span', {class: 'broken'}, '✗ broken'),
             run.violations + (run.violations === 1 ? ' assertion' : ' assertions')]),
        ...cells.filter(cell => cell.refused !== null).map(cell =>
            [cell.label, '–', 'refused', cell.refused])];
    return rows.length === 0 ? null : make('details', {open: ''}, make('summary', {}, rows.length + ' of note'),
        table('troubles', ['cell', 'seed', 'state', 'why'], rows));
}

/* Columns in which cells differ; the others are a tick away. */
function comparison() {
    const {cells, runs: all} = report.comparison;
    if (cells.length < 2 && all.length < 2) return null;
    const able = cells.filter(cell => cell.runs > 0);
    const known = COLUMNS.filter(([key]) => able.some(cell => cell[key].count > 0));
    const differing = able.length < 2 ? known : known.filter(([key]) =>
        new Set(able.map(cell => JSON.stringify(cell[key]))).size > 1);
    const place = make('div', {}, comparisonTable(able, differing)), alike = known.length - differing.length;
    return section('Comparison',
        make('p', {class: 'hint'}, 'mean ± deviation over the seeds; steps of all nodes; click a heading to sort' +
            (able.some(cell => cell.runs > 1) && able.every(cell => !cell.differences) ? '; kith report --baseline SETTING adds paired differences' : '')),
        alike === 0 ? null : tick('with the ' + alike + (alike === 1 ? ' column' : ' columns') + ' in which all are equal', false,
            on => place.replaceChildren(comparisonTable(able, on ? known : differing)), 'equal'),
        place, troubles(report.comparison));
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

/* What an exchange came to; most of it is nobody's fault, and says so. */
function exchanges() {
    const counts = ['attempts', 'done', 'refused', 'skipped', 'failed', 'torn'];
    const rows = runs.flatMap(run => run.last.map(row => cells(run, [
        'peer ' + row.peer, row.step, ...counts.map(key => row[key]),
        bytes(row.bytes_sent), bytes(row.bytes_received), seconds(row.waiting_s)])));
    return rows.length === 0 ? null : section('Exchanges',
        make('p', {class: 'hint'}, 'busy and skipped put an exchange off, failed ones changed neither model; training went on through all of them'),
        runs.map(note), table('exchanges', withRun(['peer', term('steps'),
            ...counts.map(key => term(key === 'refused' ? 'busy' : key)), 'sent', 'received', term('waiting')]), rows));
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

/* Peers whose curves are not on the page are in its means and bands. */
function note(run) {
    const kept = run.results.get('rows.peers');
    if (!run.isCell && kept !== undefined) return make('p', {class: 'hint'},
        (several ? 'run ' + run.letter + ': ' : '') + (run.places.length > 0 ? 'rows and marks' : 'rows, marks and links') + ' are of ' + (Number(kept) > 0 ? number(Number(kept)) +
        ' of ' + number(run.nodes) + ' peers' : 'no peer') + ' (kith sim --rows); the summary counts all');
    return !run.isCell && run.peersAll > run.peers.length ? make('p', {class: 'hint'},
        (several ? 'run ' + run.letter + ': ' : '') + 'each peer: the first ' + run.peers.length +
        ' of ' + number(run.peersAll) + '; means and bands count ' + (run.peersAll > 10000 ? 'more of them' : 'all')) : null;
}

/* Each fault from its begin to its end; what began and ended together is one. */
function faults() {
    const rows = runs.flatMap(run => run.intervals.map(one => cells(run, [
        make('span', {class: 'fault'}, make('i', {class: 'chip', style:
            {background: FAULT_COLOURS[one.kind] || '#555555'}}), make('span', {}, term(one.kind))),
        seconds(one.from), one.to === null ? 'the end' : seconds(one.to), whomText(one),
        absent(one.factor) || one.factor <= 0 ? '–' : '× ' + number(one.factor)])));
    return rows.length === 0 ? null : section('Faults', runs.filter(someFaults).map(run => make('p', {class: 'hint'},
        (several ? 'run ' + run.letter + ': ' : '') + 'the first ' + number(run.faults.length) + ' of ' + number(run.faultsAll) +
        ' begins and ends, up to ' + seconds(run.faults.at(-1).time_s) + ', here and below the plots')), table('faults',
        withRun(['fault', 'from', 'to', 'of', 'factor']), rows));
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

