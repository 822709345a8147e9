/* Shows the page, and one that follows its runs again whenever something is new:
 * `kith report --follow` says what, as operations on the document (follow.c).
 * What a reader has chosen stays; nothing is drawn anew while a button of the
 * mouse is down. */
const source = JSON.parse(document.getElementById('kith-data').textContent);
const kept = {};
let close = () => {}, stop = new AbortController(), pressed = false, waiting = false;

function show() {
    const open = new Set([...document.querySelectorAll('details[open] > summary')].map(one => one.textContent));
    const focus = document.activeElement && document.activeElement.id, at = [scrollX, scrollY];
    stop.abort();
    stop = new AbortController();
    kept.signal = stop.signal;
    close();
    close = showReport(source, kept);
    kept.again = true;
    for (const one of document.querySelectorAll('details > summary'))
        if (open.has(one.textContent)) one.parentElement.open = true;
    if (focus) document.getElementById(focus)?.focus({preventScroll: true});
    scrollTo(...at);
}

function apply(operations) {
    for (const {p: path, k: keep, v: rows, s: value} of operations) {
        let place = source;
        const last = rows ? path : path.slice(0, -1);
        for (const step of last) place = place[step];
        if (rows) place.splice(keep, Infinity, ...rows);
        else place[path.at(-1)] = value;
    }
}

function renew() {
    waiting = pressed;
    if (!waiting) show();
}

show();
if (source.live) {
    document.body.dataset.generation = source.generation;
    const events = new EventSource('events?since=' + source.generation);
    const taken = event => {
        document.body.dataset.generation = event.lastEventId;
        renew();
    };
    events.addEventListener('change', event => { apply(JSON.parse(event.data)); taken(event); });
    events.addEventListener('whole', event => { Object.assign(source, JSON.parse(event.data)); taken(event); });
    addEventListener('pointerdown', () => { pressed = true; });
    addEventListener('pointerup', () => { pressed = false; if (waiting) renew(); });
}
