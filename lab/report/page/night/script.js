'use strict';
// Draws the page of a night from the data in it: verdicts worst first, what is new, since when and by which commit.
(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const { night, runs, history } = data;
  const kTones = {
    crash: 'stop',
    fault: 'stop',
    hang: 'stop',
    'time-limit': 'stop',
    'bad-input': 'stop',
    'check-failed': 'fail',
    worse: 'fail',
    moved: 'fail',
    'other-conditions': 'fail',
    'no-golden-result': 'drift',
    drifted: 'drift',
    improved: 'better',
    passed: 'good',
    'not-run': 'none',
  };
  const tone = verdict => `tone-${kTones[verdict] ?? 'none'}`;
  const words = verdict => verdict.replaceAll('-', ' ');

  // An element: el('td', { class: 'x' }, child, ...); text is never markup.
  function el(name, attributes = {}, ...children) {
    const made = ['svg', 'path', 'circle', 'line', 'title'].includes(name)
      ? document.createElementNS('http://www.w3.org/2000/svg', name)
      : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (value !== null && value !== undefined && value !== '') made.setAttribute(key, value);
    }
    made.append(...children.flat().filter(child => child !== null && child !== undefined));
    return made;
  }
  const badge = verdict => el('span', { class: `badge ${tone(verdict)}` }, words(verdict));
  const seconds = s => (s >= 90 ? `${(s / 60).toFixed(1)} min` : s >= 9.95 ? `${s.toFixed(0)} s` : `${s.toFixed(1)} s`);
  const time = us =>
    us >= 1e6 ? `${(us / 1e6).toPrecision(3)} s` : us >= 1e3 ? `${(us / 1e3).toPrecision(3)} ms` : us > 0 ? `${us.toPrecision(3)} us` : '';
  const plain = value =>
    typeof value !== 'number'
      ? value === null
        ? ''
        : String(value)
      : Number.isInteger(value)
        ? String(value)
        : String(Number(value.toPrecision(6)));
  const percent = share => `${share > 0 ? '+' : ''}${Number((share * 100).toPrecision(3))} %`;
  const day = date => date.slice(0, 10);
  const one = (count, word) => `${count} ${word}${count === 1 ? '' : 's'}`;

  const nightsOf = history ? history.nights : [];
  const seriesOf = (run, row, field) => history?.series[run]?.find(series => series.row === row && series.field === field);

  // A number over the nights. `since`: the date of the night from which on it is marked.
  function spark(series, since, width = 170, height = 30) {
    if (!series || series.points.length < 2) return el('span', { class: 'soft' }, series ? 'first night' : '');
    const firstNight = nightsOf[0].number,
      lastNight = nightsOf[nightsOf.length - 1].number;
    const values = series.points.map(point => point[1]);
    const low = Math.min(...values),
      high = Math.max(...values);
    const x = number => 4 + (width - 8) * (lastNight === firstNight ? 1 : (number - firstNight) / (lastNight - firstNight));
    const y = value => (high === low ? height / 2 : height - 4 - ((height - 8) * (value - low)) / (high - low));
    const sinceNight = since ? nightsOf.find(one => one.date === since)?.number : undefined;
    const path = series.points
      .map(([number, value], at) => `${at === 0 ? 'M' : 'L'}${x(number).toFixed(1)} ${y(value).toFixed(1)}`)
      .join('');
    const dots = series.points.map(([number, value], at) => {
      const of = nightsOf.find(one => one.number === number);
      const kind = number === sinceNight ? 'first' : at === series.points.length - 1 ? 'last' : '';
      return el(
        'circle',
        { cx: x(number).toFixed(1), cy: y(value).toFixed(1), r: kind ? 3 : 1.6, class: kind },
        el('title', {}, `${of ? `${day(of.date)} ${of.commit}: ` : ''}${plain(value)}`),
      );
    });
    const label = `${series.field} over ${one(values.length, 'night')}: ${plain(values[0])} to ${plain(values[values.length - 1])}, least ${plain(low)}, most ${plain(high)}`;
    return el(
      'svg',
      { class: 'spark', width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': label },
      el('path', { d: path }),
      dots,
    );
  }

  function copyButton(text) {
    const button = el('button', { type: 'button' }, 'copy');
    button.addEventListener('click', () =>
      navigator.clipboard?.writeText(text).then(() => {
        button.textContent = 'copied';
      }),
    );
    return button;
  }

  // What is to blame: the first bad commit, or the commits among which it is.
  function since(run, onset) {
    const where = [onset.field, onset.row].filter(Boolean).join(', ');
    const what =
      onset.drift !== null
        ? `${where} drifts: ${plain(onset.before)} to ${plain(onset.after)}, ${percent(onset.drift)}`
        : where || words(run.verdict);
    const commit = onset.commit ? [el('code', {}, onset.commit), onset.subject ? ` ${onset.subject}` : ''] : ['a night without a commit'];
    const better = run.verdict === 'improved';
    const box = el(
      'div',
      { class: 'since' },
      el(
        'p',
        { style: 'margin:0' },
        el('b', {}, `${onset.nights === 1 ? 'New tonight' : `Since ${one(onset.nights, 'night')}`}: `),
        what,
        el('br'),
        onset.between.length > 1
          ? 'first seen at '
          : onset.good_commit || onset.nights < nightsOf.length
            ? `first ${better ? '' : 'bad '}commit `
            : 'in every night that is known, the first at ',
        commit,
        el('span', { class: 'soft' }, `, night of ${day(onset.date)}`),
      ),
    );
    if (onset.between.length > 1) {
      const bisect = `git bisect start ${onset.commit.split('+')[0]} ${onset.good_commit.split('+')[0]} && git bisect run cm384 baseline check ${night.folder} --only ${run.name}`;
      box.append(
        el(
          'details',
          {},
          el(
            'summary',
            {},
            `one of ${one(onset.between.length, 'commit')} since ${onset.good_commit}, ${better ? 'the last before' : 'which was good'}`,
          ),
          el(
            'ol',
            {},
            onset.between.map(line => el('li', {}, line)),
          ),
          el('div', { class: 'repeat' }, el('code', {}, bisect), copyButton(bisect)),
        ),
      );
    }
    return box;
  }

  const kStatus = { past: 'past', within: 'within', condition: 'condition' };
  function changes(run) {
    if (run.changes.length === 0) return null;
    const order = [...run.changes].sort(
      (a, b) =>
        (a.status === 'past' ? 0 : a.status === 'condition' ? 1 : 2) - (b.status === 'past' ? 0 : b.status === 'condition' ? 1 : 2) ||
        Math.abs(parseFloat(b.change ?? 0)) - Math.abs(parseFloat(a.change ?? 0)),
    );
    const kShown = 12;
    const row = change => {
      const onset = run.onsets.find(one => one.row === change.row && one.field === change.field);
      return el(
        'tr',
        {},
        el('td', { class: 'text' }, change.row ?? ''),
        el('td', { class: 'id' }, change.field),
        el('td', { class: 'number' }, plain(change.before)),
        el('td', { class: 'number' }, plain(change.after)),
        el('td', { class: 'number' }, change.change ?? ''),
        el('td', {}, change.allowed ?? ''),
        el('td', { class: kStatus[change.status] ?? '' }, change.status),
        history ? el('td', {}, spark(seriesOf(run.name, change.row, change.field), onset?.date)) : null,
      );
    };
    const head = el(
      'tr',
      {},
      ['row', 'field'].map(name => el('th', {}, name)),
      ['golden', 'tonight', 'change'].map(name => el('th', { class: 'number' }, name)),
      ['allowed', 'status'].map(name => el('th', {}, name)),
      history ? el('th', {}, 'over the nights') : null,
    );
    const body = el('tbody', {}, order.slice(0, kShown).map(row));
    const box = el('div', { class: 'scroll' }, el('table', {}, el('thead', {}, head), body));
    if (order.length <= kShown) return box;
    const more = el('button', { type: 'button' }, `show ${order.length - kShown} more`);
    more.addEventListener('click', () => {
      body.append(...order.slice(kShown).map(row));
      more.remove();
    });
    return el('div', {}, box, el('p', {}, more));
  }

  // Drifts are within tolerance of the golden result, or equal to a renewed one: their numbers stand in the history.
  const drifts = run =>
    run.onsets
      .filter(onset => onset.drift !== null && !run.changes.some(change => change.row === onset.row && change.field === onset.field))
      .slice(0, 6)
      .map(onset => el('div', {}, spark(seriesOf(run.name, onset.row, onset.field), onset.date, 420, 60)));

  function card(run) {
    const shown = run.onsets.slice(0, 3);
    return el(
      'section',
      { class: `card ${tone(run.verdict)}`, id: run.name, 'data-verdict': run.verdict },
      el('header', {}, badge(run.verdict), el('h3', {}, run.name), el('span', { class: 'reason' }, run.reason)),
      shown.map(onset => since(run, onset)),
      run.onsets.length > shown.length ? el('p', { class: 'soft' }, `and ${one(run.onsets.length - shown.length, 'further field')}`) : null,
      run.report ? el('pre', {}, run.report) : null,
      drifts(run),
      changes(run),
      el('div', { class: 'repeat' }, el('code', {}, run.command), copyButton(run.command)),
      run.folder
        ? el(
            'div',
            { class: 'links' },
            el('span', { class: 'soft' }, 'what it left:'),
            run.files.map(file => el('a', { href: `${encodeURIComponent(run.folder)}/${file}` }, file)),
          )
        : null,
    );
  }

  function counts() {
    const of = {};
    for (const run of runs) of[run.verdict] = (of[run.verdict] ?? 0) + 1;
    const order = [...new Set([...runs].sort((a, b) => a.severity - b.severity).map(run => run.verdict))];
    return el(
      'ul',
      { class: 'counts' },
      order.map(verdict => el('li', { class: tone(verdict) }, el('b', {}, of[verdict]), words(verdict))),
    );
  }

  function matrix() {
    if (!history || nightsOf.length === 0) return null;
    const head = el(
      'tr',
      {},
      el('th', {}, ''),
      nightsOf.map((one, at) =>
        el(
          'th',
          { class: 'night', title: `${one.date} ${one.commit} ${one.subject}` },
          at % 5 === (nightsOf.length - 1) % 5 ? el('span', {}, one.date.slice(5, 10)) : '',
        ),
      ),
    );
    const names = [...new Set([...runs.map(run => run.name), ...Object.keys(history.verdicts)])];
    const lines = names.map(name => {
      const byNight = new Map((history.verdicts[name] ?? []).map(entry => [entry.night, entry]));
      return el(
        'tr',
        {},
        el(
          'td',
          {},
          runs.some(run => run.name === name && !(run.passes && run.verdict === 'passed')) ? el('a', { href: `#${name}` }, name) : name,
        ),
        nightsOf.map(one => {
          const entry = byNight.get(one.number);
          const verdict = entry?.verdict ?? 'not-run';
          return el(
            'td',
            {},
            el('span', {
              class: `cell ${tone(verdict)} ${verdict === 'passed' ? 'quiet' : ''}`,
              title: `${name}, ${day(one.date)} ${one.commit}: ${words(verdict)}${entry?.reason ? `, ${entry.reason}` : ''}`,
            }),
          );
        }),
      );
    });
    const legend = [
      ['good', 'passed'],
      ['better', 'improved'],
      ['drift', 'drifted, no golden result'],
      ['fail', 'moved past tolerance'],
      ['stop', 'did not end well'],
      ['none', 'not run'],
    ];
    return [
      el('h2', {}, `The last ${one(nightsOf.length, 'night')}`),
      el('div', { class: 'scroll' }, el('table', { class: 'nights', style: 'width:auto' }, el('thead', {}, head), el('tbody', {}, lines))),
      el(
        'div',
        { class: 'legend' },
        legend.map(([kind, text]) => el('span', {}, el('span', { class: `cell tone-${kind}` }), text)),
      ),
    ];
  }

  function table() {
    const filter = el('input', { type: 'search', placeholder: 'filter by name', 'aria-label': 'filter runs by name' });
    const body = el('tbody');
    const draw = () =>
      body.replaceChildren(
        ...runs
          .filter(run => run.name.includes(filter.value))
          .map(run => {
            const first = history?.series[run.name]?.[0];
            return el(
              'tr',
              {},
              el('td', {}, badge(run.verdict)),
              el('td', {}, run.name),
              el('td', { class: 'number' }, seconds(run.wall_s)),
              el('td', { class: 'number' }, time(run.simulated_us)),
              el('td', { class: 'number' }, run.peak_MB > 0 ? `${run.peak_MB.toFixed(0)} MB` : ''),
              el('td', { class: 'number' }, run.fields || ''),
              el('td', { class: 'number' }, run.changes.filter(change => change.status !== 'condition').length || ''),
              history
                ? el(
                    'td',
                    {},
                    first ? el('span', { class: 'soft' }, `${first.field} ${plain(first.points[first.points.length - 1]?.[1])}`) : '',
                  )
                : null,
              history ? el('td', {}, spark(first, null, 120, 22)) : null,
            );
          }),
      );
    filter.addEventListener('input', draw);
    draw();
    const head = el(
      'tr',
      {},
      ['verdict', 'run'].map(name => el('th', {}, name)),
      ['host time', 'simulated', 'memory', 'fields', 'moved'].map(name => el('th', { class: 'number' }, name)),
      history ? [el('th', {}, 'first number'), el('th', {}, 'over the nights')] : null,
    );
    return [
      el('h2', {}, `All ${one(runs.length, 'run')}`),
      el('div', { class: 'controls' }, filter),
      el('div', { class: 'scroll' }, el('table', { id: 'runs' }, el('thead', {}, head), body)),
    ];
  }

  const bad = runs.filter(run => !(run.passes && run.verdict === 'passed')).sort((a, b) => a.severity - b.severity);
  const failed = runs.filter(run => !run.passes).length;
  const title = failed > 0 ? `${one(failed, 'run')} of ${runs.length} did not pass` : `All ${runs.length} runs passed`;
  document.title = `${title}: ${night.commit || day(night.date)}`;
  document
    .getElementById('page')
    .replaceChildren(
      el('h1', {}, title),
      el('p', {}, night.commit ? [el('code', {}, night.commit), ` ${night.subject}`] : ''),
      el(
        'p',
        { class: 'soft' },
        `${night.date.replace('T', ' ').replace('Z', ' UTC')}, ${seconds(night.wall_s)} on the host, cm384 ${night.build}, baseline in ${night.folder}`,
      ),
      counts(),
      ...(matrix() ?? []),
      el('h2', {}, bad.length > 0 ? 'What is to be looked at' : 'Nothing to look at'),
      ...(bad.length > 0 ? bad.map(card) : [el('p', { class: 'empty' }, 'Every run ended, and every number is within its tolerance.')]),
      ...table(),
    );
})();
