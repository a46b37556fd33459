/**
 * The page's script, which shows the episodes in the page's data. It creates elements and sets their text, never
 * markup, and makes no request.
 */
export const script = `
'use strict';
(() => {
  const data = JSON.parse(document.getElementById('episode-data').textContent);
  const root = document.getElementById('episode-browser');
  if (!data.some((run) => run.files.some((file) => file.groups.length))) return;
  root.replaceChildren();
  const make = (tag, className, ...content) => {
    const element = document.createElement(tag);
    if (className) element.className = className;
    element.append(...content);
    return element;
  };
  const clean = (text) => text.replace(/[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u2028\\u2029]/g, '\\u00b7');
  const number = (value) => (Object.is(value, -0) ? '0' : String(Math.round(value * 1000) / 1000));
  const signed = (value) => (value > 0 ? '+' : '') + number(value);
  const choice = (label, change) => {
    const select = make('select');
    select.addEventListener('change', change);
    controls.append(make('label', '', label, select));
    return select;
  };
  const fill = (select, names) => select.replaceChildren(...names.map((name, i) => {
    const option = make('option', '', clean(name));
    option.value = String(i);
    return option;
  }));
  const controls = make('div', 'controls');
  const view = make('div');
  root.append(controls, view);
  const run = choice('run', () => { showRun(); });
  const file = choice('at', () => { showFile(); });
  const kind = choice('groups', () => { showFile(); });
  const group = choice('task', () => { showGroup(); });
  fill(kind, ['all', 'mixed', 'all equal', 'with invalid output', 'with failures']);
  const move = (by) => {
    const next = group.selectedIndex + by;
    if (next >= 0 && next < group.options.length) { group.selectedIndex = next; showGroup(); }
    else {
      const other = file.selectedIndex + by;
      if (other < 0 || other >= file.options.length) return;
      file.selectedIndex = other;
      showFile();
      if (by < 0) { group.selectedIndex = group.options.length - 1; showGroup(); }
    }
  };
  for (const [label, by] of [['\\u2190 previous', -1], ['next \\u2192', 1]]) {
    const button = make('button', '', label);
    button.type = 'button';
    button.addEventListener('click', () => move(by));
    controls.append(button);
  }
  const equal = (g) => g.episodes.every((e) => e.reward === g.episodes[0].reward);
  const keeps = [
    () => true,
    (g) => !equal(g),
    equal,
    (g) => g.episodes.some((e) => e.turns.some((t) => !t.valid)),
    (g) => g.episodes.some((e) => e.failure),
  ];
  let groups = [];
  const currentRun = () => data[run.selectedIndex];
  function showRun() {
    fill(file, currentRun().files.map((f) => f.name));
    file.selectedIndex = Math.max(0, currentRun().files.findIndex((f) => f.name.startsWith('step ')));
    showFile();
  }
  function showFile() {
    const chosen = currentRun().files[file.selectedIndex];
    groups = chosen ? chosen.groups.filter(keeps[kind.selectedIndex]) : [];
    fill(group, groups.map((g) => g.task + '  (' + number(g.episodes.reduce((sum, e) => sum + e.reward, 0) / g.episodes.length) + ')'));
    group.selectedIndex = groups.length ? 0 : -1;
    showGroup();
  }
  function showGroup() {
    const chosen = groups[group.selectedIndex];
    if (!chosen) { view.replaceChildren(make('p', 'empty', 'no such group among the episodes in this page')); return; }
    const texts = currentRun().texts;
    const task = make('div', 'task', make('b', '', clean(chosen.task)), make('pre', '', clean(texts[chosen.data])));
    view.replaceChildren(task, ...chosen.episodes.map((episode) => showEpisode(episode, texts)));
  }
  function showEpisode(episode, texts) {
    const heading = make('h3', '', 'sample ' + episode.sample + ', reward ' + number(episode.reward));
    const failure = episode.failure ? [make('p', '', 'failed: ' + clean(episode.failure))] : [];
    return make('article', 'episode', heading, ...failure, ...episode.turns.map((turn) => showTurn(turn, texts)));
  }
  function showTurn(turn, texts) {
    const sign = turn.advantage > 0 ? ' good' : turn.advantage < 0 ? ' bad' : '';
    const facts = [make('b', '', clean(turn.agent)), 'reward ' + number(turn.reward)];
    if (turn.stepReward) facts.push("of it the turn's own " + number(turn.stepReward));
    if (turn.penalty) facts.push('of it penalty ' + number(-turn.penalty));
    if (turn.advantage !== null) facts.push('advantage ' + signed(turn.advantage));
    facts.push(turn.tokens + ' tokens');
    if (!turn.valid) facts.push('invalid');
    const what = make('div', 'what', ...facts.map((fact) => make('span', '', fact)));
    const prompt = make('details', '', make('summary', 'faint', 'prompt'), make('pre', '', clean(texts[turn.prompt])));
    return make('div', 'turn' + sign, what, make('pre', '', clean(texts[turn.text]) || '(nothing)'), prompt);
  }
  document.addEventListener('click', (event) => {
    const link = event.target.closest && event.target.closest('a[data-run]');
    if (!link) return;
    run.selectedIndex = Number(link.dataset.run);
    showRun();
    const at = currentRun().files.findIndex((f) => f.name === 'step ' + link.dataset.step);
    if (at < 0) return;
    file.selectedIndex = at;
    kind.selectedIndex = 0;
    showFile();
    const found = groups.findIndex((g) => g.task === link.dataset.task);
    if (found >= 0) { group.selectedIndex = found; showGroup(); }
  });
  fill(run, data.map((r) => r.name));
  showRun();
})();
`;
