// Which unknown parameters move a result.
import { figuresOfSensitivity } from './figures_of_sensitivity.js';
import { date } from './numbers.js';
import { element, facts, rowsTable } from './tables.js';
import { show } from './view.js';

export function buildSensitivity(page, result) {
  const { document: run } = result,
    { sensitivity } = run;
  const title = `Sensitivity of ${sensitivity.metric}: ${sensitivity.study}`;
  document.title = `cm384: ${title}`;
  page.append(element('h1', {}, title), element('p', { class: 'command', id: 'command' }, element('code', {}, run.invocation.command)));
  page.append(
    facts([
      ['date', date(run.invocation.date)],
      ['machine', run.machine],
      ['runs', sensitivity.runs],
      ['failed', sensitivity.failed],
      ['program', `${run.simulator.build.version} ${run.simulator.build.commit.replace('+', ' + ')}`],
    ]),
  );
  for (const note of run.notes ?? []) page.append(element('p', { class: 'remark' }, note));
  const place = element('div', { class: 'figures', id: 'sensitivity-figures' });
  page.append(element('h2', {}, 'What moves it'), place, element('h2', {}, 'Parameters'), rowsTable(result.flat));
  show(place, figuresOfSensitivity(result));
}
