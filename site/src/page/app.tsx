import { useEffect, useState } from 'preact/hooks';
import { colourClass } from '../../../dashboard/src/chart/theme.js';
import { percent } from '../../../src/base/host.js';
import { type Chosen, chosenIn, hashOf, onGpu, withGpu } from './address.js';
import { Curves } from './curves.js';
import { RunPart } from './run-part.js';
import { type Comparison, compared, newRun, TRAILING } from './run-view.js';
import { useRuns } from './use-runs.js';
import { variants } from './variants.js';

/** The whole page. */
export function App() {
  const runs = useRuns();
  const [chosen, setChosen] = useState(() => chosenIn(location.hash));
  const [copied, setCopied] = useState(false);
  const views = runs.views ?? variants.map(() => newRun);
  const [first = newRun, second = newRun] = views;
  useEffect(() => {
    const change = () => setChosen(chosenIn(location.hash));
    addEventListener('hashchange', change);
    return () => removeEventListener('hashchange', change);
  }, []);

  const start = () => {
    history.replaceState(null, '', hashOf(chosen));
    setCopied(false);
    runs.start(chosen);
  };
  const copy = () => {
    const address = new URL(hashOf(chosen), location.href).href;
    navigator.clipboard.writeText(address).then(
      () => setCopied(true),
      () => prompt('The link to these runs', address),
    );
  };
  const over = views.every(({ state }) => state === 'done' || state === 'failed');
  return (
    <main>
      <h1>A team that trains in this tab</h1>
      <p>
        Two models of 98,240 parameters learn by reinforcement here, in your browser: no server, nothing computed
        before. A <b>coder</b> writes a command line for a request, and a sandbox tests it. In a quarter of the episodes
        the sandbox has a newer toolbox, in which every command has another name. Then a <b>fixer</b> is called, reads
        the error message, and has one try: it has twelve names to find.
      </p>
      <p>
        The same team trains twice from the same warm start. The fixer is called in episodes that go badly, so that next
        to a baseline which all agents share nearly everything it writes looks bad. Dr. MAS gives each agent a baseline
        of its own.
      </p>
      <div class="controls">
        <button type="button" class="main" onClick={start}>
          {runs.views === undefined ? 'train' : 'start again'}
        </button>
        <button type="button" disabled={runs.views === undefined || over} onClick={() => runs.setPaused(!runs.paused)}>
          {runs.paused ? 'continue' : 'pause'}
        </button>
        <label>
          seed
          <input
            type="number"
            min="0"
            step="1"
            value={chosen.seed}
            onInput={({ currentTarget }) => setChosen({ ...chosenIn(`seed=${currentTarget.value}`), set: chosen.set })}
          />
        </label>
        {'gpu' in navigator && (
          <label>
            <input
              type="checkbox"
              checked={onGpu(chosen)}
              onChange={({ currentTarget }) => setChosen(withGpu(chosen, currentTarget.checked))}
            />
            on the GPU
          </label>
        )}
        <button type="button" onClick={copy}>
          {copied ? 'copied' : 'copy the link'}
        </button>
        {chosen.set.length > 0 && <span class="faint">with {chosen.set.join(', ')}</span>}
      </div>
      <p class="verdict" data-verdict>
        {runs.views === undefined ? 'Nothing is trained yet.' : verdict(compared(first, second))}
      </p>
      <Curves views={views} />
      {runs.views !== undefined && (
        <div class="pair">
          {views.map((run, i) => {
            const { name = '', compares = '' } = variants[i] ?? {};
            return <RunPart key={name} {...{ name, compares, run }} colour={colourClass(i)} />;
          })}
        </div>
      )}
      <p class="notes">
        {onGpu(chosen) ? (
          <>
            Each run is a worker of this page: the training loop and the recipe of the command line, with kernels in
            WGSL on this browser's GPU. That is experimental, and models of this size hardly need one.
          </>
        ) : (
          <>
            Each run is a worker of this page on one core: the training loop, the recipe and the kernels (C++ as
            WebAssembly) of the command line, where <code>{command(chosen)}</code> computes the same numbers. There
            faster kernels are the default.
          </>
        )}{' '}
        Nothing leaves the tab. One seed is one run, and no proof: the documentation has five pairs with their
        intervals.
      </p>
    </main>
  );
}

const command = ({ seed, set }: Chosen) =>
  ['DRMAS_KERNELS=wasm npx drmas compare repair --seed', seed, ...set.map((each) => `--set ${each}`)].join(' ');

function verdict(comparison: Comparison | undefined): string {
  if (comparison === undefined) return `Compared once both have ${TRAILING} steps of reinforcement.`;
  const { step, points, ahead, means } = comparison;
  const shares = variants.map(({ name }, i) => `${name} ${percent(means[i] ?? 0)}`).join(', ');
  const where = `over the ${TRAILING} steps up to step ${step}: ${shares}`;
  if (ahead === undefined) return `Level, ${where}`;
  return `${variants[ahead].name} is ahead by ${Math.abs(points).toFixed(1)} points ${where}`;
}
