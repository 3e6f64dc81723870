// The page: tables and figures of one finished run, of several side by side, of a sweep, or of a sensitivity.
import { buildComparison } from './page_of_comparison.js';
import { buildRun } from './page_of_run.js';
import { buildSensitivity } from './page_of_sensitivity.js';
import { buildSweep } from './page_of_sweep.js';
import { isSensitivity, isSweep, resultsOf } from './result.js';
import { element } from './tables.js';

const page = document.getElementById('page');
const data = JSON.parse(document.getElementById('data').textContent);
const results = resultsOf(data.runs);
page.replaceChildren();
if (data.links) page.append(element('nav', { class: 'links' }, ...data.links.map(({ href, text }) => element('a', { href }, text))));
if (results.length > 1) {
  buildComparison(page, results);
} else if (isSweep(results[0])) {
  buildSweep(page, results[0]);
} else if (isSensitivity(results[0])) {
  buildSensitivity(page, results[0]);
} else {
  buildRun(page, results[0]);
}
