// Whether a page's pictures can be read.
import assert from 'node:assert/strict';

export const kWidths = [400, 900, 1600];

// Charts draw a change in a frame after the one that heard of it; a frame more for a busy machine.
export const drawn = page =>
  page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done)))));

// No text on another, nothing outside: pictures can be read at this width.
export async function testReadable(page, what) {
  await drawn(page);
  const figures = await page.$$eval('.figure', list =>
    list.map(figure => {
      const frame = figure.querySelector('svg').getBoundingClientRect();
      const texts = [...figure.querySelectorAll('svg text')]

        .map(text => {
          const { x, y, width, height } = text.getBBox(),
            place = text.getScreenCTM();
          const corner = (dx, dy) => new DOMPoint(x + dx * width, y + dy * height).matrixTransform(place);
          return {
            text: text.textContent,
            box: text.getBoundingClientRect(),
            corners: [corner(0, 0), corner(1, 0), corner(1, 1), corner(0, 1)],
          };
        })
        .filter(({ box }) => box.width > 0);
      const outside = texts
        .filter(
          ({ box }) => box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1,
        )
        .map(({ text }) => text);
      // Their frames, turned as they are, share more than an edge: on every axis of both.
      const axes = ([a, b, , d]) =>
        [b, d].map(end => {
          const length = Math.hypot(end.x - a.x, end.y - a.y) || 1;
          return { x: (end.x - a.x) / length, y: (end.y - a.y) / length };
        });
      const span = (corners, axis) => corners.map(({ x, y }) => x * axis.x + y * axis.y);
      const over = (a, b) =>
        [...axes(a.corners), ...axes(b.corners)].every(axis => {
          const [one, other] = [span(a.corners, axis), span(b.corners, axis)];
          return Math.min(Math.max(...one), Math.max(...other)) - Math.max(Math.min(...one), Math.min(...other)) > 3;
        });
      const clashes = texts.flatMap((a, index) =>
        texts
          .slice(index + 1)
          .filter(b => over(a, b))
          .map(b => `${a.text} | ${b.text}`),
      );
      return { id: figure.id, shapes: figure.querySelectorAll('svg path').length, outside, clashes };
    }),
  );
  for (const { id, shapes, outside, clashes } of figures) {
    assert.ok(shapes > 8, `${what}: ${id} is drawn`);
    assert.deepEqual(clashes, [], `${what}: ${id}: texts lie on each other`);
    assert.deepEqual(outside, [], `${what}: ${id}: texts outside`);
  }
  return figures.map(({ id }) => id);
}

// Gives the window `width`. Figures follow their place's width once the page has been laid out anew, which a busy machine
// does some time after the window has changed.
export async function setWidth(page, width) {
  await page.setViewportSize({ width, height: 900 });
  await page.waitForFunction(
    wide =>
      window.innerWidth === wide &&
      [...document.querySelectorAll('.drawing')].every(
        one => Math.abs(one.querySelector('svg').getBoundingClientRect().width - one.clientWidth) < 2,
      ),
    width,
  );
}

export async function testNothingSticksOut(page, what) {
  const [wide, window_] = await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
  assert.equal(wide, window_, `${what}: nothing sticks out of the window`);
}

// The same at every width, and nothing sticks out of the window.
export async function testEveryWidth(page, what) {
  for (const width of kWidths) {
    await setWidth(page, width);
    await testReadable(page, `${what}, ${width} wide`);
    await testNothingSticksOut(page, `${what}, ${width} wide`);
  }
}
