// Several runs of one study, side by side.
import { figuresOfComparison } from './figures_of_comparison.js';
import { figuresOfService } from './figures_of_service.js';
import { messagesSection } from './page_of_run.js';
import { comparisonTable, element, runsTable, settingsTable } from './tables.js';
import { show } from './view.js';

export function buildComparison(page, results) {
  const title = `${results[0].document.study}: ${results.length} runs`;
  document.title = `cm384: ${title}`;
  const overview = element('div', { class: 'figures', id: 'row-figures' });
  page.append(
    element('h1', {}, title),
    runsTable(results),
    element('h2', {}, 'What differs between the runs'),
    settingsTable(results),
    element('h2', {}, 'Rows'),
    comparisonTable(results),
    element('h2', {}, 'Rows in pictures'),
    overview,
  );
  show(overview, [...figuresOfComparison(results), ...figuresOfService(results)]);
  page.append(...messagesSection(results));
}
