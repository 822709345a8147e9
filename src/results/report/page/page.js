/* The page, in the order that a reader asks: the answer, the plots, the peers,
 * then numbers. */
const names = [...new Set(runs.map(run =>
    run.isCell ? run.file : run.facts.get('name') || run.file))];
if (names.length === 0) names.push('no run yet');
const cellsAll = report.comparison.cells.length, runsAll = report.comparison.runs.length;
const told = runs.length === 0 || runs.some(run => run.isCell)
    ? cellsAll + ' cells, ' + runsAll + ' runs' +
      (runs.filter(run => run.isCell).length < cellsAll - single.length
          ? ', ' + runs.length + ' drawn' : '')
    : several ? runs.length + ' runs compared'
    : [runs[0].facts.get('world'), peersOf(runs[0]), runs[0].facts.get('algorithm'),
       'seed ' + runs[0].facts.get('seed')].join(' · ');
document.title = names.join(', ') + ' – kith report';
const boxes = make('div', {class: 'charts'}, CHARTS.map(plotBox));
const legendPlace = make('div', {});
document.body.replaceChildren(
    make('header', {}, make('h1', {}, names.join(', ')),
        make('p', {class: 'hint'}, told, ' · written by ' + report.writer,
        report.live ? make('span', {id: 'live', class: report.live.state}, ' · ' + {waiting: 'no run has begun yet',
            running: 'the run goes on', ended: 'the run has ended'}[report.live.state]) : null)),
    make('main', {}, answer(), controls(), legendPlace, boxes, runs.map(note),
        target(), peersSection(), comparison(), paired(), verdicts(), faults(), summary(),
        speeds(), exchanges(), identities(), outcomes(), events(), sources(), glossary()));
redraw();
legendPlace.replaceWith(legend());
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw, {signal: kept.signal});
soon(() => {}); /* whole, where nothing is left */
document.body.dataset.ready = 'yes';
return () => plots.forEach(entry => { if (entry.graph) entry.graph.destroy(); });
