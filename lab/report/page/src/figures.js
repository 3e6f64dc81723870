// Writes every figure as an SVG file: node figures.js DATA.json FOLDER
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { toSvg } from './drawing.js';
import { figuresOfComparison } from './figures_of_comparison.js';
import { figuresOfExplanation } from './figures_of_explanation.js';
import { figuresOfLines } from './figures_of_lines.js';
import { figuresOfMessages } from './figures_of_messages.js';
import { figuresOfRows } from './figures_of_rows.js';
import { figuresOfRun } from './figures_of_run.js';
import { figuresOfOccupancy, figuresOfService } from './figures_of_service.js';
import { figuresOfSensitivity } from './figures_of_sensitivity.js';
import { figuresOfSweep } from './figures_of_sweep.js';
import { isSensitivity, isSweep, resultsOf } from './result.js';
import { sweepModel } from './sweep_model.js';

const kPaperWidth = 900;
const [data, folder] = process.argv.slice(2);
const results = resultsOf(JSON.parse(readFileSync(data, 'utf8')).runs);
const write = (name, figure) => {
  writeFileSync(join(folder, `${name}.svg`), `${toSvg(figure, kPaperWidth)}\n`);
  console.log(`${name}.svg`);
};
if (results.length > 1) {
  for (const figure of [...figuresOfComparison(results), ...figuresOfService(results), ...figuresOfMessages(results)])
    write(figure.id, figure);
} else if (isSweep(results[0])) {
  for (const figure of figuresOfSweep(sweepModel(results[0]))) write(figure.id, figure);
} else if (isSensitivity(results[0])) {
  for (const figure of figuresOfSensitivity(results[0])) write(figure.id, figure);
} else {
  const [result] = results;
  for (const figure of [
    ...figuresOfRows(result),
    ...figuresOfService([result]),
    ...figuresOfExplanation(result),
    ...figuresOfLines(result),
    ...figuresOfMessages([result]),
  ])
    write(figure.id, figure);
  result.occupancy.forEach((occupancy, index) => {
    for (const figure of figuresOfOccupancy(occupancy)) write(result.occupancy.length > 1 ? `row${index}-${figure.id}` : figure.id, figure);
  });
  result.runs.forEach((run, index) => {
    for (const figure of figuresOfRun(run)) write(result.runs.length > 1 ? `run${index}-${figure.id}` : figure.id, figure);
  });
}
