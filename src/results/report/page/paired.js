/* Settings against a baseline, paired over seeds (kith report --baseline): the
 * mean difference and its 95 % confidence interval, which paired.c works out.
 * An interval on one side of zero is drawn full, another one hollow. */
const held = report.comparison.cells.filter((cell, at) => cell.differences && cell.baseline !== at &&
    Object.keys(cell.differences).length > 0);
const clear = difference => difference.half_width !== null && Math.abs(difference.mean) > difference.half_width;

/* Shares differ by percentage points. */
function differenceText(difference, format) {
    if (!difference) return '–';
    const [text, unit] = format === percent ? [v => number(Number((100 * v).toPrecision(3))), ' points']
        : [v => format(Number(v.toPrecision(3))), ''];
    const sign = difference.mean > 0 ? '+' : difference.mean < 0 ? '−' : '';
    return sign + text(Math.abs(difference.mean)) + (difference.half_width === null ? '' : ' ± ' + text(difference.half_width)) + unit;
}

/* A row each: its name, and below it the interval on one scale with zero. */
function pairedPicture([key, head, format], width, light) {
    const ink = light ? PAPER.ink : colour('--ink'), quiet = light ? PAPER.quiet : colour('--quiet');
    const rows = held.filter(cell => cell.differences[key]).map(cell => ({cell, ...cell.differences[key]}));
    const ends = rows.flatMap(one => [one.mean - (one.half_width || 0), one.mean + (one.half_width || 0)]);
    /* Where a name and its number are too wide for one line they have two. */
    const narrow = rows.some(one => 6.6 * (one.cell.label.length + differenceText(one, format).length) > width - 50);
    const tall = narrow ? 52 : 38, mid = narrow ? 40 : 25;
    const left = 14, right = width - 14, top = light ? 30 : 6, bottom = top + tall * rows.length;
    const x = scaleOf({range: [Math.min(0, ...ends), Math.max(0, ...ends)]}, left, right);
    const against = cell => report.comparison.cells[cell.baseline].label;
    return {name: key + '-differences', width, height: bottom + 20,
        draw: pen => {
            if (light) pen.rect(0, 0, width, bottom + 20, {fill: PAPER.paper});
            if (light) pen.text(left, 18, 'Difference in ' + head, {size: 14, weight: 'bold', fill: ink});
            rows.forEach((one, at) => {
                const y = top + tall * at, tint = lineOfCell(one.cell)?.colour || ink, text = differenceText(one, format);
                const low = x(one.mean - (one.half_width || 0)), high = x(one.mean + (one.half_width || 0));
                const hint = () => one.cell.label + ' against ' + against(one.cell) + ': ' + text + ', ' + one.pairs + ' pairs';
                pen.text(left, y + 13, one.cell.label.slice(0, 110), {size: 11, fill: ink});
                pen.text(narrow ? left : right, y + (narrow ? 28 : 13), text, {size: 11, fill: ink, anchor: narrow ? 'start' : 'end', weight: clear(one) ? 'bold' : undefined});
                pen.path([[x(0), y + mid - 8], [x(0), y + mid + 8]], {stroke: quiet, width: 1});
                pen.path([[low, y + mid], [high, y + mid]], {stroke: tint, width: 2});
                for (const end of [low, high]) pen.path([[end, y + mid - 4], [end, y + mid + 4]], {stroke: tint, width: 2});
                pen.dot(x(one.mean), y + mid, 4.5, clear(one) ? {fill: tint} : {fill: light ? PAPER.paper : colour('--card'), stroke: tint, width: 2}, hint);
            });
            pen.text(Math.max(left + 6, Math.min(right - 6, x(0))), bottom + 14, '0', {size: 11, fill: quiet, anchor: 'middle'});
        },
        points: () => [['cell', 'baseline', 'column', 'pairs', 'mean', 'half_width_95'],
            ...rows.map(one => [one.cell.label, against(one.cell), key, one.pairs, one.mean, one.half_width])]};
}

function paired() {
    if (held.length === 0) return null;
    const moved = one => one && (one.mean !== 0 || one.half_width > 0);
    const known = COLUMNS.filter(([key]) => held.some(cell => moved(cell.differences[key])));
    if (known.length === 0) return section('Differences from the baseline', make('p', {class: 'hint'}, 'none: all runs are equal'));
    let shown = known.find(([key]) => key === kept.difference) || known.find(([key]) => key === METRIC) || known[0];
    const place = make('div', {id: 'differences'});
    const fill = () => {
        const picture = pairedPicture(shown, innerWidth < 600 ? 340 : 680), pen = svgPen(picture.width, picture.height);
        picture.draw(pen);
        place.replaceChildren(pen.root);
    };
    const choose = make('select', {id: 'difference', 'aria-label': 'what is compared', onchange: event => {
        shown = known.find(([key]) => key === event.target.value);
        kept.difference = shown[0];
        fill();
    }}, known.map(([key, head]) => make('option', {value: key, ...(key === shown[0] ? {selected: ''} : {})}, head)));
    fill();
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', fill, {signal: kept.signal});
    const bases = [...new Set(held.map(cell => cell.baseline))];
    return section('Differences from ' + (bases.length === 1 ? report.comparison.cells[bases[0]].label : 'the baseline'),
        make('p', {class: 'hint'}, 'paired over seeds; ± half of the 95 % confidence interval. Bold and full: it leaves zero out. Else the luck of seeds may be all of it.'),
        make('div', {class: 'controls'}, choose, saving(() => pairedPicture(shown, 680, true))), place,
        table('paired', ['cell', ...(bases.length > 1 ? ['against'] : []), 'pairs', ...known.map(([, head]) => head)],
            held.map(cell => [cellName(cell), ...(bases.length > 1 ? [report.comparison.cells[cell.baseline].label] : []),
                Math.max(...Object.values(cell.differences).map(one => one.pairs)),
                ...known.map(([key, , format]) => {
                    const one = cell.differences[key], text = differenceText(one, format);
                    return make('span', {}, one && clear(one) ? strong(text) : text);
                })])));
}
