/* The answer in one line, and to what a reader asks next: who reached a target
 * first, and who with the fewest bytes. */
const METRIC = ['accuracy', 'test_loss', 'loss', 'consensus_distance'].find(key =>
    settings.some(run => curveOf(run, key).length > 0)) || 'loss';
const rising = METRIC === 'accuracy';
const metricName = METRIC.replace('_', ' ');
const metricText = rising ? percent : v => String(Number(v.toPrecision(4)));
const better = (a, b) => rising ? a > b : a < b;

/* Rows of the averaged model, of a cell's mean over seeds, or of the mean peer:
 * [{value, time, steps, samples, epochs, bytes}] */
function curveOf(run, key) {
    const take = (rows, name) => rows.filter(row => !absent(row[name]))
        .map(row => ({...row, value: row[name]}));
    if (run.isCell) return take(overSeeds(run, key), key);
    const own = take(run.series.get(-1) || [], key);
    return own.length > 0 ? own : take(run.spread, key + '.mean');
}

const curves = settings.map(run => curveOf(run, METRIC));
const bestOf = curve => curve.reduce((a, b) => a === null || better(b.value, a.value) ? b : a, null);
const strong = text => make('b', {}, text);

/* "ended at 95.24 % accuracy after 4.9 s; a peer sent 8.8 MB on average" */
function outcome(run, curve) {
    const end = curve[curve.length - 1], best = bestOf(curve), all = run.results.get('bytes.sent');
    const each = absent(all) ? end.bytes : Number(all) / run.nodes;
    return [' ended at ', rising ? strong(metricText(end.value) + ' accuracy') : ['a ' + metricName + ' of ', strong(metricText(end.value))],
        ' after ', strong(seconds(end.time)),
        each > 0 ? [run.nodes > 1 ? '; a peer sent ' : ', having sent ', strong(bytes(each)),
                    run.nodes > 1 ? ' on average (' + bytes(each * run.nodes) + ' in all, by ' + number(run.nodes) + ')' : ''] : '',
        better(best.value, end.value) && metricText(best.value) !== metricText(end.value)
            ? '; its best was ' + metricText(best.value) + ' at ' + seconds(best.time) : '', '. '];
}

function endOf(run) {
    const broken = run.verdicts.filter(verdict => !verdict.held).length;
    const done = run.results.get('completed');
    return [Number(done) === 1 ? '' : 'The run has not come to its end. ',
        run.verdicts.length === 0 ? '' : broken === 0
            ? make('span', {class: 'held'}, run.verdicts.length === 1 ? '✓ its assertion held. ' : '✓ all ' + run.verdicts.length + ' assertions held. ')
            : make('span', {class: 'broken'}, '✗ ' + broken + ' of ' + run.verdicts.length + ' assertions broken. '),
        run.faults.length === 0 ? '' : (someFaults(run) ? 'At least ' : '') + number(run.intervals.length) + (run.intervals.length === 1 ? ' fault' : ' faults') + ' struck on the way.'];
}

function answerLine() {
    const known = settings.map((run, at) => [run, curves[at]]).filter(([, curve]) => curve.length > 0);
    if (runs.length === 0) return 'No run has ended yet.';
    if (known.length === 0) return [runs.every(run => run.facts.get('model') === 'none')
        ? 'Messages alone: no peer has a model. '
        : 'No model was evaluated: give evaluate: a time, and curves appear here. ',
                                    several ? '' : endOf(runs[0])];
    const [alone] = settings;
    if (!compared) return [alone.isCell ? (alone.peers.length > 1 ? 'The mean of ' + alone.peers.length + ' seeds' : 'The averaged model')
        : alone.facts.get('world') === 'train' ? 'The model'
        : METRIC === 'consensus_distance' ? 'The peers' : alone.series.has(-1) ? 'The averaged model' : 'The mean peer', outcome(...known[0]), alone.isCell ? '' : endOf(alone)];
    const [run, curve] = known.reduce((a, b) =>
        better(b[1][b[1].length - 1].value, a[1][a[1].length - 1].value) ? b : a);
    return ['Of ' + settings.length + ', ', strong(run.isCell ? run.letter : run.letter + ' (' + title(run) + ')'), outcome(run, curve)];
}

/* --- a target ----------------------------------------------------------- */

/* One that all lines come to. */
function firstTarget() {
    const ends = curves.filter(curve => curve.length > 0).map(curve => bestOf(curve).value);
    const last = rising ? Math.min(...ends) : Math.max(...ends);
    return rising ? Math.floor(100 * last) : Number((last * 1.005).toPrecision(3));
}

/* In which columns lines are told apart, and which row has least of each. */
function targetRows(target) {
    const goal = rising ? target / 100 : target;
    const hits = settings.map((run, at) => ({run, hit: curves[at].find(row => !better(goal, row.value)) || null}));
    const axes = Object.keys(AXES).filter(offered);
    const least = Object.fromEntries(axes.map(axis => [axis, hits.filter(({hit}) => hit && !absent(hit[axis]))
        .reduce((a, b) => a === null || b.hit[axis] < a.hit[axis] ? b : a, null)]));
    return {hits, axes, least};
}

const lineLabel = run => [make('i', {class: 'chip', style: {background: run.colour}}),
    compared ? (run.isCell ? run.letter : run.letter + ' · ' + title(run)) : title(run)];

function targetTable({hits, axes, least}) {
    return table('target', ['', ...axes.map(axis => term(AXES[axis].label))], hits.map(({run, hit}) => [
        make('span', {}, lineLabel(run)),
        ...axes.map(axis => {
            if (!hit || absent(hit[axis])) return make('span', {class: 'never'}, hit ? '–' : 'never');
            const text = AXES[axis].format(hit[axis]);
            return compared && least[axis].hit[axis] === hit[axis] ? strong(text) : text;
        })]));
}

function targetLine({hits, least}) {
    const count = hits.filter(({hit}) => hit).length;
    if (count === 0) return 'None came to it.';
    if (!compared) return 'First evaluation that came to it:';
    const name = axis => {
        const equal = hits.filter(({hit}) => hit && hit[axis] === least[axis].hit[axis]).length - 1;
        return equal > 0 ? 'a tie of ' + (equal + 1) + ', ' + least[axis].run.letter + ' among them' : least[axis].run.letter;
    };
    return [count + ' of ' + hits.length + ' came to it; first ', strong(name('time')), ' (' + seconds(least.time.hit.time) + ')',
        least.bytes ? ['; with the fewest bytes ', strong(name('bytes')), ' (' + bytes(least.bytes.hit.bytes) + ' a peer)'] : '', '.'];
}

function target() {
    if (curves.every(curve => curve.length === 0)) return null;
    const place = make('div', {}), line = make('span', {id: 'target-line'});
    const input = make('input', {type: 'number', id: 'goal', step: 'any',
        value: kept.goal ?? (Number(asked.get('goal')) || firstTarget())});
    const fill = () => {
        const found = targetRows(Number(input.value));
        line.replaceChildren(...[targetLine(found)].flat(Infinity));
        place.replaceChildren(targetTable(found));
    };
    input.addEventListener('input', () => { kept.goal = Number(input.value); fill(); });
    fill();
    return make('section', {class: 'goal'}, make('p', {}, make('label', {}, 'To ' + (rising ? 'an ' : 'a ') + metricName + ' of ', input,
        rising ? ' %: ' : ': '), line), place);
}

function answer() {
    return make('div', {class: 'answer'}, make('p', {id: 'answer'}, answerLine()));
}
