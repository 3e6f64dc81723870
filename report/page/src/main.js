// The page: tables and figures of one finished run.
import { draw, toSvg } from './drawing.js';
import { figuresOfRows } from './figures_of_rows.js';
import { figuresOfRun, unusedLinks } from './figures_of_run.js';
import { resultOf } from './result.js';
import { element, facts, optionsTable, parametersTable, publishedTable, rowsTable } from './tables.js';

const kPaperWidth = 900;

function save(name, url) {
  element('a', { href: url, download: name }).click();
}

function saveSvg(figure) {
  save(`${figure.id}.svg`, URL.createObjectURL(new Blob([toSvg(figure, kPaperWidth)], { type: 'image/svg+xml' })));
}

// Twice the size, for print.
function savePng(figure) {
  const picture = new Image();
  picture.onload = () => {
    const canvas = element('canvas', { width: kPaperWidth * 2, height: figure.height * 2 });
    const context = canvas.getContext('2d');
    context.fillStyle = '#ffffff';
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(picture, 0, 0, canvas.width, canvas.height);
    save(`${figure.id}.png`, canvas.toDataURL('image/png'));
  };
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(toSvg(figure, kPaperWidth))}`;
}

function button(text, label, action) {
  const made = element('button', { type: 'button', 'aria-label': label }, text);
  made.addEventListener('click', action);
  return made;
}

// Puts figures into `place` and keeps them as wide as it; gives back what removes them.
function show(place, figures) {
  const charts = figures.map(figure => {
    const drawing = element('div', { class: 'drawing', style: `height: ${figure.height}px`, role: 'img', 'aria-label': figure.title });
    place.append(element('figure', { class: figure.wide ? 'figure wide' : 'figure', id: figure.id },
      element('figcaption', {}, element('h3', {}, figure.title), button('SVG', `${figure.title} as SVG`, () => saveSvg(figure)),
        button('PNG', `${figure.title} as PNG`, () => savePng(figure)), element('p', { class: 'note' }, figure.note)), drawing));
    return draw(drawing, figure);
  });
  const observer = new ResizeObserver(() => charts.forEach(chart => chart.resize()));
  observer.observe(place);
  return () => {
    observer.disconnect();
    charts.forEach(chart => chart.dispose());
    place.replaceChildren();
  };
}

function runsSection({ runs }) {
  const place = element('div', { class: 'figures', id: 'run-figures' });
  const choice = element('select', { id: 'run', 'aria-label': 'machine' }, ...runs.map((run, index) => element('option', { value: index }, run.run)));
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
  return { parts: [element('h2', {}, 'The machine while it ran'), element('div', { class: 'controls' },
    runs.length > 1 ? element('label', {}, 'run ', choice) : element('span', { class: 'soft' }, runs[0].run)), place, idle], update };
}

function build(result) {
  const page = document.getElementById('page');
  const { document: run } = result;
  document.title = `cm384: ${run.study} on ${run.machine ?? 'a machine'}`;
  page.replaceChildren(element('h1', {}, `${run.study} on ${run.machine ?? 'a machine'}`));
  if (run.complete === false) page.append(element('p', { class: 'warning' }, 'This run was interrupted; the rows are what was known by then.'));
  page.append(facts([['seed', run.seed], ['rows', result.rows.length], ['parameters changed', Object.keys(run.machine_overrides ?? {}).length],
    ['simulated', run.simulator ? `${run.simulator.simulated_us.toFixed(1)} us` : null], ['program', run.simulator?.build ? `${run.simulator.build.version} ${run.simulator.build.commit}` : null]]));
  for (const note of run.notes ?? []) page.append(element('p', { class: 'warning' }, note));
  page.append(element('h2', {}, 'Rows'), rowsTable(result.flat));
  const overview = element('div', { class: 'figures', id: 'row-figures' });
  const figures = figuresOfRows(result);
  if (figures.length) page.append(element('h2', {}, 'Rows in pictures'), overview);
  show(overview, figures);
  if (result.published.length) page.append(element('h2', {}, 'Predicted against published'), publishedTable(result.published));
  if (result.runs.length) {
    const { parts, update } = runsSection(result);
    page.append(...parts);
    update();
  } else {
    page.append(element('h2', {}, 'The machine while it ran'), element('p', { class: 'soft' }, 'The folder has no profile.json: nothing was kept beside the rows.'));
  }
  page.append(element('h2', {}, 'Options of the run'), optionsTable(run.parameters ?? {}));
  if (result.machine) page.append(element('h2', {}, 'Machine'), parametersTable(result.machine.parameters));
}

build(resultOf(JSON.parse(document.getElementById('data').textContent)));
