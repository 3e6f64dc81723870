// A sweep: what was swept, what it shows, every point.
import { figuresOfGoals, figuresOfMetric, withoutLines } from './figures_of_sweep.js';
import { date } from './numbers.js';
import { nameOf, sweepModel } from './sweep_model.js';
import { axesTable, failuresTable, foundTable, pointsTable } from './sweep_tables.js';
import { element, facts, optionsTable } from './tables.js';
import { show } from './view.js';

function metricsSection(model) {
  const place = element('div', { class: 'figures', id: 'metric-figures' });
  const choice = element(
    'select',
    { id: 'metric', 'aria-label': 'metric' },
    ...model.metrics.map(({ path }, index) => element('option', { value: index }, path)),
  );
  let clear = () => {};
  const update = () => {
    clear();
    clear = show(place, figuresOfMetric(model, model.metrics[Number(choice.value)]));
  };
  choice.addEventListener('input', update);
  const crowded = withoutLines(model);
  const left = crowded.length
    ? [
        element(
          'p',
          { class: 'soft' },
          `Without lines over ${crowded.map(({ key }) => key).join(', ')}: there would be too many. Maps and main effects hold them.`,
        ),
      ]
    : [];
  return {
    parts: [
      element(
        'div',
        { class: 'controls' },
        model.metrics.length > 1 ? element('label', {}, 'metric ', choice) : element('span', { class: 'soft' }, nameOf(model.metrics[0])),
      ),
      ...left,
      place,
    ],
    update,
  };
}

function section(page, title, ...parts) {
  page.append(element('h2', {}, title), ...parts);
}

export function buildSweep(page, result) {
  const { document: run } = result,
    model = sweepModel(result),
    { sweep } = model;
  const title = `Sweep ${sweep.name}: ${sweep.study}`;
  document.title = `cm384: ${title}`;
  page.append(element('h1', {}, title), element('p', { class: 'command', id: 'command' }, element('code', {}, run.invocation.command)));
  if (run.complete === false) page.append(element('p', { class: 'warning' }, 'This sweep is not complete; `cm384 sweep` goes on with it.'));
  const failed = model.rows.filter(row => row.flat.failed);
  const design = sweep.design === 'grid' ? 'grid' : 'Latin hypercube';
  page.append(
    facts([
      ['date', date(run.invocation.date)],
      ['machine', run.machine],
      ['design', sweep.find ? `${design}, search` : design],
      ['points run', sweep.points.length],
      ['rows', model.rows.length],
      ['failed', failed.length],
      ['program', `${run.simulator.build.version} ${run.simulator.build.commit.replace('+', ' + ')}`],
    ]),
  );
  section(
    page,
    'What was swept',
    axesTable(model),
    ...(sweep.where.length ? [element('p', { class: 'remark' }, `Only where ${sweep.where.join(', and ')}.`)] : []),
    ...sweep.costs.map(cost => element('p', { class: 'remark' }, `${cost.name} = ${cost.formula}`)),
  );
  const options = Object.fromEntries(Object.entries(run.parameters).filter(([key]) => key !== 'study' && !key.includes('.')));
  if (Object.keys(options).length) section(page, 'Options of every point', optionsTable(options));
  if (model.found) section(page, 'Found', ...foundTable(model));
  const goals = figuresOfGoals(model);
  if (goals.length) {
    const place = element('div', { class: 'figures', id: 'goal-figures' });
    section(page, 'Trade-offs', place);
    show(place, goals);
  }
  if (model.metrics.length) {
    const { parts, update } = metricsSection(model);
    section(page, 'What moves with what', ...parts);
    update();
  }
  if (failed.length) section(page, 'Failed', failuresTable(model, failed));
  section(
    page,
    'Points',
    ...(result.withoutPages
      ? [element('p', { class: 'soft', id: 'without-pages' }, `Points without a link have no page. ${result.withoutPages}`)]
      : []),
    pointsTable(model),
  );
}
