// The page: tables and figures of one finished run, or of several side by side.
import { buildComparison } from './page_of_comparison.js';
import { buildRun } from './page_of_run.js';
import { resultOf } from './result.js';

const page = document.getElementById('page');
const results = JSON.parse(document.getElementById('data').textContent).runs.map(resultOf);
page.replaceChildren();
if (results.length === 1) {
  buildRun(page, results[0]);
} else {
  buildComparison(page, results);
}
