/* The page of `kith report`, of `report`, the JSON element of the page; what a
 * reader has chosen stands in `kept`, for the next time. All data reaches the document as text nodes and attributes only; dygraphs sees
 * labels that this script made. Files share one function: see page.c.
 *
 * This one: elements, numbers as people read them, tables of the report. */
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

const absent = value => value === null || value === undefined || value === '';

/* toLocaleString() makes one of these at each call. */
const WHOLE = new Intl.NumberFormat('en'), THOUSANDTHS = new Intl.NumberFormat('en', {maximumFractionDigits: 3});

function number(value) {
    if (absent(value)) return '–';
    if (typeof value !== 'number') return String(value);
    if (Number.isInteger(value)) return WHOLE.format(value);
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(3);
    return String(Number(value.toPrecision(5)));
}

/* In the largest of units a thousand apart that leaves at least 1. */
function scaled(value, units, digits) {
    let at = 0, size = Number(value);
    while (Math.abs(size) >= 1000 && at + 1 < units.length) { size /= 1000; at++; }
    return Number(size.toPrecision(digits)) + units[at];
}

const bytes = value => absent(value) ? '–'
    : scaled(value, [' B', ' kB', ' MB', ' GB', ' TB', ' PB'], 4);
const flops = value => absent(value) ? '–'
    : scaled(value, ['', 'k', 'M', 'G', 'T', 'P'].map(unit => ' ' + unit + 'FLOP/s'), 4);

function short(value) {
    const size = Math.abs(value);
    return size >= 1e6 ? Number((value / 1e6).toPrecision(4)) + ' M'
         : size >= 1e4 ? Number((value / 1e3).toPrecision(4)) + ' k'
         : size > 0 && size < 1e-3 ? value.toExponential(1)
         : String(Number(value.toPrecision(4)));
}

function seconds(value) {
    if (absent(value)) return '–';
    const size = Math.abs(value);
    if (size > 0 && size < 0.1) return size < 1e-4
        ? Number((value * 1e6).toPrecision(4)) + ' µs'
        : Number((value * 1e3).toPrecision(4)) + ' ms';
    return THOUSANDTHS.format(Number(value)) + ' s';
}

const percent = value => (100 * value).toFixed(2) + ' %';
const digits = count => value => Number((100 * value).toPrecision(count)) + ' %';

/* How values of a chart and of its axis are written; else as numbers. */
const FORMATS = {percent: [percent, digits(4)], share: [digits(3), digits(3)],
    overlap: [v => (100 * v).toFixed(1) + ' %', digits(3)], bytes: [bytes, bytes],
    seconds: [seconds, seconds]};

/* A table of the report: {columns, rows} -> objects; none has no rows. There are
 * tens of thousands of rows: no object is made but theirs. */
function objects(table, read = value => value) {
    if (!table) return [];
    const {columns, rows} = table;
    return rows.map(row => {
        const object = {};
        for (let at = 0; at < columns.length; at++) object[columns[at]] = read(row[at]);
        return object;
    });
}

/* The same of measures: what is no number was not measured. */
const measures = table => objects(table, value => Number.isFinite(value) ? value : null);

/* A colour of page.css, as a canvas needs it; asked for once, for each question
 * has the browser work out all styles. */
const colours = new Map();
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => colours.clear(), {signal: kept.signal});
function colour(name) {
    if (!colours.has(name)) colours.set(name, getComputedStyle(document.body).getPropertyValue(name).trim());
    return colours.get(name);
}

/* What is not on the screen when the page opens is made while the browser has
 * nothing else to do; of a page that is shown again, at once. */
const later = [], {signal} = kept;
function soon(act) {
    if (kept.again) act();
    else if (later.push(act) === 1) requestIdleCallback(workOff, {timeout: 2000});
}

function workOff(deadline) {
    if (signal.aborted) return;
    do later.shift()();
    while (later.length > 0 && deadline && deadline.timeRemaining() > 0);
    if (later.length > 0) requestIdleCallback(workOff, {timeout: 2000});
    else document.body.dataset.whole = 'yes';
}

function workOffAll() {
    while (later.length > 0) later.shift()();
}

function choice(name, value, label, now, act) {
    const input = make('input', {type: 'radio', name, value});
    input.checked = now;
    input.addEventListener('change', () => act(value));
    return make('label', {}, input, label);
}

function tick(label, now, act, id) {
    const input = make('input', {type: 'checkbox', ...(id ? {id} : {})});
    input.checked = now;
    input.addEventListener('change', () => act(input.checked));
    return make('label', {}, input, label);
}

/* A section, or nothing where there is nothing to show. */
function section(name, ...content) {
    return make('section', {}, make('h2', {}, name), content);
}
