/* Pictures that can be taken away. A picture is a function of a pen; one pen
 * makes elements of an SVG, the other strokes on a canvas, so that what is
 * saved as SVG, as PNG, and what is printed, is one drawing. Coordinates are
 * pixels, y downwards; styles are {stroke, fill, width, dash, opacity}. A hint is
 * what a pointer is told there, a function, for most are never asked. */
const SVG = 'http://www.w3.org/2000/svg';
const FONT = 'system-ui, "DejaVu Sans", sans-serif';

function svgPen(width, height) {
    const node = (tag, properties, text) => {
        const element = document.createElementNS(SVG, tag);
        for (const [name, value] of Object.entries(properties))
            if (!absent(value)) element.setAttribute(name, value);
        if (text !== undefined) element.textContent = text;
        return element;
    };
    const root = node('svg', {xmlns: SVG, viewBox: '0 0 ' + width + ' ' + height, width, height,
                              'font-family': FONT, role: 'img'});
    let into = root, clips = 0;
    const add = (tag, properties, style, hint) => {
        const element = node(tag, {...properties, stroke: style.stroke, fill: style.fill || 'none',
            'stroke-width': style.width, 'stroke-dasharray': style.dash ? style.dash.join(' ') : null,
            opacity: style.opacity, 'stroke-linejoin': style.stroke ? 'round' : null});
        if (hint) element.append(node('title', {}, hint()));
        into.append(element);
        return element;
    };
    const round = v => Math.round(v * 100) / 100;
    return {root,
        path: (points, style, closed, hint) => add('path', {d: points.map(([x, y], at) =>
            (at ? 'L' : 'M') + round(x) + ' ' + round(y)).join('') + (closed ? 'Z' : '')}, style, hint),
        rect: (x, y, w, h, style, hint) => add('rect', {x: round(x), y: round(y), width: round(w), height: round(h)}, style, hint),
        dot: (x, y, r, style, hint) => add('circle', {cx: round(x), cy: round(y), r}, style, hint),
        text: (x, y, text, {size = 12, fill, anchor = 'start', weight, turn} = {}) =>
            into.append(node('text', {x: round(x), y: round(y), fill, 'font-size': size, 'font-weight': weight,
                'text-anchor': anchor, transform: turn ? 'rotate(-90 ' + round(x) + ' ' + round(y) + ')' : null}, text)),
        clip: (x, y, w, h, inside) => {
            const id = 'clip' + ++clips + '-' + Math.round(x + y + w + h);
            const clip = node('clipPath', {id});
            clip.append(node('rect', {x, y, width: w, height: h}));
            const group = node('g', {'clip-path': 'url(#' + id + ')'});
            root.append(clip, group);
            into = group;
            inside();
            into = root;
        }};
}

function canvasPen(width, height, scale) {
    const root = make('canvas', {width: width * scale, height: height * scale});
    const canvas = root.getContext('2d'), hints = [];
    canvas.scale(scale, scale);
    root.addEventListener('mousemove', event => {
        const x = event.offsetX * width / root.clientWidth, y = event.offsetY * width / root.clientWidth;
        const found = hints.findLast(one => x >= one.x && x <= one.x + one.w && y >= one.y && y <= one.y + one.h);
        root.title = found ? found.hint() : '';
    });
    const paint = (style, trace) => {
        canvas.globalAlpha = style.opacity ?? 1;
        canvas.lineJoin = 'round';
        canvas.beginPath();
        trace();
        if (style.fill) { canvas.fillStyle = style.fill; canvas.fill(); }
        if (style.stroke) {
            canvas.strokeStyle = style.stroke;
            canvas.lineWidth = style.width || 1;
            if (style.dash) canvas.setLineDash(style.dash);
            canvas.stroke();
            if (style.dash) canvas.setLineDash([]);
        }
        canvas.globalAlpha = 1;
    };
    return {root,
        clear: () => {
            canvas.clearRect(0, 0, width, height);
            hints.length = 0;
        },
        path: (points, style, closed) => paint(style, () => {
            points.forEach(([x, y], at) => at ? canvas.lineTo(x, y) : canvas.moveTo(x, y));
            if (closed) canvas.closePath();
        }),
        rect: (x, y, w, h, style, hint) => {
            if (hint) hints.push({x, y, w, h, hint});
            paint(style, () => canvas.rect(x, y, w, h));
        },
        dot: (x, y, r, style, hint) => {
            if (hint) hints.push({x: x - r, y: y - r, w: 2 * r, h: 2 * r, hint});
            paint(style, () => canvas.arc(x, y, r, 0, 2 * Math.PI));
        },
        text: (x, y, text, {size = 12, fill, anchor = 'start', weight = '', turn} = {}) => {
            canvas.save();
            canvas.translate(x, y);
            if (turn) canvas.rotate(-Math.PI / 2);
            canvas.font = weight + ' ' + size + 'px ' + FONT;
            canvas.fillStyle = fill;
            canvas.textAlign = {start: 'left', middle: 'center', end: 'right'}[anchor];
            canvas.fillText(text, 0, 0);
            canvas.restore();
        },
        clip: (x, y, w, h, inside) => {
            canvas.save();
            canvas.beginPath();
            canvas.rect(x, y, w, h);
            canvas.clip();
            inside();
            canvas.restore();
        }};
}

/* --- saving ------------------------------------------------------------ */

function save(name, blob) {
    const url = URL.createObjectURL(blob);
    make('a', {href: url, download: name.replace(/[^\w.-]+/g, '-')}).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
}

/* Fields in quotes where they need them; what a table program would take for a
 * formula is told to be text. */
function csvText(rows) {
    const field = value => {
        if (absent(value)) return '';
        if (typeof value === 'number') return String(value);
        const text = (/^[=+\-@\t\r]/.test(value) ? '\'' : '') + value;
        return '"' + text.replaceAll('"', '""') + '"';
    };
    return rows.map(row => row.map(field).join(',') + '\r\n').join('');
}

function svgText(picture) {
    const pen = svgPen(picture.width, picture.height);
    picture.draw(pen);
    return new XMLSerializer().serializeToString(pen.root);
}

/* Buttons of a picture: {name, width, height, draw(pen), points()}, made when
 * one is pressed. */
function saving(picture) {
    const kinds = {
        SVG: one => save(one.name + '.svg', new Blob([svgText(one)], {type: 'image/svg+xml'})),
        PNG: one => {
            const pen = canvasPen(one.width, one.height, 2);
            one.draw(pen);
            pen.root.toBlob(blob => save(one.name + '.png', blob), 'image/png');
        },
        CSV: one => save(one.name + '.csv', new Blob([csvText(one.points())], {type: 'text/csv'})),
    };
    return make('span', {class: 'saving'}, Object.entries(kinds).map(([kind, act]) =>
        make('button', {type: 'button', class: 'save', 'data-kind': kind,
            title: 'save ' + (kind === 'CSV' ? 'the points as CSV' : 'the picture as ' + kind),
            onclick: () => act(picture())}, kind)));
}

/* --- the picture of a plot --------------------------------------------- */

const PAPER = {ink: '#1c2329', quiet: '#66727c', grid: '#e6e8e6', paper: '#ffffff'};

/* One of its axes: {range, log, ticks: [{v, label}]} -> pixels. */
function scaleOf(axis, from, to) {
    const on = v => axis.log ? Math.log10(v) : v;
    const [low, high] = axis.range.map(on);
    return v => from + (on(v) - low) / (high - low || 1) * (to - from);
}

/* plot: {title, unit, x, y, xTitle, lines: [{name, points, style}], lanes} as
 * plots.js has it, so wide; light whatever the page is, for paper. */
function plotPicture(plot, width) {
    const columns = Math.floor(width / 210), legend = Math.ceil(plot.legend.length / columns);
    const lanes = plot.lanes.rows.length, left = 70, right = 18, top = 34 + 16 * legend;
    const bottom = top + Math.round(0.42 * width);
    const gap = lanes > 0 ? 7 : 0, height = bottom + 40 + 13 * lanes + gap; /* below the lowest tick's label */
    const draw = pen => {
        const x = scaleOf(plot.x, left, width - right), y = scaleOf(plot.y, bottom, top);
        pen.rect(0, 0, width, height, {fill: PAPER.paper});
        pen.text(left, 20, plot.title + (width < 600 ? '' : ' (' + plot.unit + ')'), {size: 14, weight: 'bold', fill: PAPER.ink});
        plot.legend.forEach((line, at) => {
            const dx = left + at % columns * (width - left) / columns, dy = 36 + 16 * Math.floor(at / columns);
            pen.path([[dx, dy - 4], [dx + 18, dy - 4]], line.style);
            pen.text(dx + 23, dy, line.name.slice(0, width < 600 ? 20 : 34), {size: 11, fill: PAPER.ink});
        });
        for (const tick of plot.x.ticks) {
            if (!tick.label || x(tick.v) < left || x(tick.v) > width - right) continue;
            pen.path([[x(tick.v), top], [x(tick.v), bottom]], {stroke: PAPER.grid, width: 1});
            pen.text(x(tick.v), bottom + 13 * lanes + gap + 16, tick.label, {size: 11, fill: PAPER.quiet, anchor: 'middle'});
        }
        for (const tick of plot.y.ticks) {
            if (!tick.label || y(tick.v) < top - 1 || y(tick.v) > bottom + 1) continue;
            pen.path([[left, y(tick.v)], [width - right, y(tick.v)]], {stroke: PAPER.grid, width: 1});
            pen.text(left - 6, y(tick.v) + 4, tick.label, {size: 11, fill: PAPER.quiet, anchor: 'end'});
        }
        pen.text((left + width - right) / 2, height - 6, plot.xTitle, {size: 12, fill: PAPER.ink, anchor: 'middle'});
        pen.clip(left, top, width - left - right, bottom - top, () => {
            for (const line of plot.lines) drawBand(pen, line, x, y);
            for (const line of plot.lines) {
                const points = line.points.filter(p => !plot.y.log || p[1] > 0).map(p => [x(p[0]), y(p[1])]);
                if (points.length === 1) pen.dot(...points[0], 3, {fill: line.style.stroke});
                else if (points.length > 1) pen.path(points, line.style);
                if (line.ring) pen.dot(...points.at(-1), 5, {stroke: line.style.stroke, width: 1.5});
            }
        });
        drawLanes(pen, plot.lanes, x, left, width - right, bottom + 2 + gap, PAPER.quiet);
        pen.path([[left, top], [left, bottom], [width - right, bottom]], {stroke: PAPER.quiet, width: 1});
    };
    return {name: plot.name, width, height, draw, points: () => plot.points};
}

function drawBand(pen, line, x, y) {
    if (line.points.length < 2 || line.points[0].length < 3) return;
    const low = line.points.map(p => [x(p[0]), y(p[2])]), high = line.points.map(p => [x(p[0]), y(p[3])]);
    if ([...low, ...high].every(p => Number.isFinite(p[1])))
        pen.path([...high, ...low.reverse()], {fill: line.style.stroke, opacity: 0.15}, true);
}
