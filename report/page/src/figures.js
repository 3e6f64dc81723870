// Writes every figure as an SVG file: node figures.js DATA.json FOLDER
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { toSvg } from './drawing.js';
import { figuresOfRows } from './figures_of_rows.js';
import { figuresOfRun } from './figures_of_run.js';
import { resultOf } from './result.js';

const kPaperWidth = 900;
const [data, folder] = process.argv.slice(2);
const result = resultOf(JSON.parse(readFileSync(data, 'utf8')));
const write = (name, figure) => {
  writeFileSync(join(folder, `${name}.svg`), `${toSvg(figure, kPaperWidth)}\n`);
  console.log(`${name}.svg`);
};
for (const figure of figuresOfRows(result)) write(figure.id, figure);
result.runs.forEach((run, index) => {
  for (const figure of figuresOfRun(run)) write(result.runs.length > 1 ? `run${index}-${figure.id}` : figure.id, figure);
});
