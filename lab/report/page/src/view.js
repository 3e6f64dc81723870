// Figures on the page: drawn, kept as wide as their place, saved as files.
import { draw, laidOut, toSvg } from './drawing.js';
import { element } from './tables.js';

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
    const canvas = element('canvas', { width: kPaperWidth * 2, height: laidOut(figure, kPaperWidth).height * 2 });
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
export function show(place, figures) {
  const charts = figures.map(figure => {
    const drawing = element('div', { class: 'drawing', role: 'img', 'aria-label': figure.title });
    const zooms = Object.entries(figure.zoom?.actions ?? {}).map(([text, action]) =>
      button(text, `${figure.title}: ${text}`, () => {
        action();
        chart.redraw();
      }),
    );
    place.append(
      element(
        'figure',
        { class: figure.wide ? 'figure wide' : 'figure', id: figure.id },
        element(
          'figcaption',
          {},
          element('h3', {}, figure.title),
          element(
            'span',
            { class: 'saves' },
            button('SVG', `${figure.title} as SVG`, () => saveSvg(figure)),
            button('PNG', `${figure.title} as PNG`, () => savePng(figure)),
          ),
          element('p', { class: 'note' }, figure.note),
          zooms.length ? element('span', { class: 'zooms' }, ...zooms) : null,
        ),
        drawing,
      ),
    );
    const chart = draw(drawing, figure);
    return chart;
  });
  const observer = new ResizeObserver(() => charts.forEach(chart => chart.resize()));
  observer.observe(place);
  return () => {
    observer.disconnect();
    charts.forEach(chart => chart.dispose());
    place.replaceChildren();
  };
}
