// One finished run.
import { figuresOfEnergy } from './figures_of_energy.js';
import { figuresOfExplanation } from './figures_of_explanation.js';
import { figuresOfLines, linesSection } from './figures_of_lines.js';
import { figuresOfMessages, messageNote, messageRows } from './figures_of_messages.js';
import { figuresOfRows } from './figures_of_rows.js';
import { figuresOfOccupancy, figuresOfService } from './figures_of_service.js';
import { figuresOfRun, unusedLinks } from './figures_of_run.js';
import { date } from './numbers.js';
import { element, facts, messagesTable, optionsTable, parametersTable, publishedTable, rowsTable } from './tables.js';
import { show } from './view.js';

function runsSection({ runs }) {
  const place = element('div', { class: 'figures', id: 'run-figures' });
  const choice = element(
    'select',
    { id: 'run', 'aria-label': 'machine' },
    ...runs.map((run, index) => element('option', { value: index }, run.run)),
  );
  const idle = element('p', { class: 'soft', id: 'idle-links' });
  let clear = () => {};
  const update = () => {
    clear();
    const run = runs[Number(choice.value)];
    clear = show(place, figuresOfRun(run));
    const unused = unusedLinks(run);
    idle.textContent = unused.length ? `Links that carried nothing: ${unused.join('; ')}.` : '';
  };
  choice.addEventListener('input', update);
  choice.value = runs.length - 1;
  return {
    parts: [
      element('h2', {}, 'The machine while it ran'),
      element(
        'div',
        { class: 'controls' },
        runs.length > 1 ? element('label', {}, 'run ', choice) : element('span', { class: 'soft' }, runs[0].run),
      ),
      place,
      idle,
    ],
    update,
  };
}

// A service's pools over time, of one row at a time.
function occupancySection({ occupancy, rows }) {
  const place = element('div', { class: 'figures', id: 'occupancy-figures' });
  const choice = element(
    'select',
    { id: 'row', 'aria-label': 'row' },
    ...rows.map((row, index) => element('option', { value: index }, row.label)),
  );
  let clear = () => {};
  const update = () => {
    clear();
    clear = show(place, figuresOfOccupancy(occupancy[Number(choice.value)]));
  };
  choice.addEventListener('input', update);
  return {
    parts: [
      element('h2', {}, 'The service while it ran'),
      ...(rows.length > 1 ? [element('div', { class: 'controls' }, element('label', {}, 'pools and rate ', choice))] : []),
      place,
    ],
    update,
  };
}

// Percentiles and pictures of a replay's messages; nothing of other runs.
export function messagesSection(results) {
  const rows = messageRows(results);
  if (!rows.length) return [];
  const place = element('div', { class: 'figures', id: 'message-figures' });
  show(place, figuresOfMessages(results));
  return [element('h2', {}, 'Messages to other memory'), messagesTable(rows), element('p', { class: 'soft' }, messageNote), place];
}

export function buildRun(page, result) {
  const { document: run } = result;
  const title = `${run.study} on ${run.machine ?? 'a machine'}`;
  document.title = `cm384: ${title}`;
  page.append(element('h1', {}, title));
  if (run.invocation) page.append(element('p', { class: 'command', id: 'command' }, element('code', {}, run.invocation.command)));
  if (run.complete === false)
    page.append(element('p', { class: 'warning' }, 'This run was interrupted; the rows are what was known by then.'));
  page.append(
    facts([
      ['date', date(run.invocation?.date)],
      ['seed', run.seed],
      ['rows', result.rows.length],
      ['parameters changed', Object.keys(run.machine_overrides ?? {}).length],
      ['simulated', run.simulator ? `${run.simulator.simulated_us.toFixed(1)} us` : null],
      ['program', run.simulator?.build ? `${run.simulator.build.version} ${run.simulator.build.commit.replace('+', ' + ')}` : null],
    ]),
  );
  for (const note of run.notes ?? []) page.append(element('p', { class: 'remark' }, note));
  page.append(element('h2', {}, 'Rows'), rowsTable(result.flat));
  const overview = element('div', { class: 'figures', id: 'row-figures' });
  const figures = [...figuresOfRows(result), ...figuresOfService([result]), ...figuresOfEnergy(result)];
  if (figures.length) page.append(element('h2', {}, 'Rows in pictures'), overview);
  show(overview, figures);
  const why = figuresOfExplanation(result);
  if (why.length) {
    const place = element('div', { class: 'figures', id: 'explanation-figures' });
    page.append(element('h2', {}, 'What bound the run'), place);
    show(place, why);
  }
  const lines = figuresOfLines(result);
  page.append(...linesSection(result));
  if (lines.length) {
    const place = element('div', { class: 'figures', id: 'line-figures' });
    page.append(place);
    show(place, lines);
  }
  page.append(...messagesSection([result]));
  if (result.published.length) page.append(element('h2', {}, 'Predicted against published'), publishedTable(result.published));
  if (result.runs.length || result.occupancy.length) {
    const { parts, update } = result.runs.length ? runsSection(result) : occupancySection(result);
    page.append(...parts);
    update();
  } else {
    page.append(
      element('h2', {}, 'The machine while it ran'),
      element('p', { class: 'soft' }, 'The folder has no profile.json: nothing was kept beside the rows.'),
    );
  }
  page.append(element('h2', {}, 'Options of the run'), optionsTable(run.parameters ?? {}));
  if (result.machine) page.append(element('h2', {}, 'Machine'), parametersTable(result.machine.parameters));
}
