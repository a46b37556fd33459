import { Chart } from '@drmas/dashboard/chart';
import { type Line, pointsOf } from '@drmas/dashboard/chart-data';
import { colourClass } from '@drmas/dashboard/theme';
import { percent, significant } from '@drmas/engine/host';
import { mean } from '@drmas/engine/math';
import { render } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { ShownTurn } from '../run/protocol.js';
import {
  type Chosen,
  chosenIn,
  doseOf,
  formerNames,
  hashOf,
  nameProblem,
  onGpu,
  usualNames,
  variants,
  withDose,
  withGpu,
} from './address.js';
import {
  type Comparison,
  compared,
  isFound,
  newRun,
  type RunView,
  successes,
  TRAILING,
  trailingMeans,
} from './run-view.js';
import { useRuns } from './use-runs.js';

/** The whole page. */
function App() {
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

  const startWith = (wanted: Chosen) => {
    history.replaceState(null, '', hashOf(wanted));
    setChosen(wanted);
    setCopied(false);
    runs.start(wanted);
  };
  const start = () => startWith(chosen);
  // The home page of the documentation loads this page when a visitor has pressed its button.
  useEffect(() => {
    if (new URLSearchParams(location.hash.slice(1)).has('start')) start();
  }, []);
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
      <p class="back">
        <a href="../" target="_top">
          ← drmas
        </a>
      </p>
      <h1>Two teams learn in this tab</h1>
      <p>
        Each team has two small language models. A <b>coder</b> writes a command, and a sandbox runs it. In some
        episodes the sandbox has a newer toolbox in which all twelve commands have new names. Then a <b>fixer</b> is
        called, reads the error message, and has one try. Nobody tells it the new names: it tries some, and learns from
        what passes. The slider says how often it is needed.
      </p>
      <p>
        Both teams begin with the same weights and play the same tasks. They differ in one line: what a try is compared
        with. The fixer is called when the first command has failed, so most of its tries look bad beside the whole
        team's average. <b>GRPO</b> compares with that average. <b>Dr. MAS</b> compares the fixer with its own tries,
        and the better ones stand out. In ten pairs of runs in which the fixer was needed in 25 % of the episodes, the
        team of Dr. MAS ended higher.
      </p>
      <div class="controls">
        <button type="button" class="main" onClick={start}>
          {runs.views === undefined ? 'train' : 'start again'}
        </button>
        <button type="button" disabled={runs.views === undefined || over} onClick={() => runs.setPaused(!runs.paused)}>
          {runs.paused ? 'continue' : 'pause'}
        </button>
        <label class="dose">
          the fixer is needed in {Math.round(100 * doseOf(chosen))} % of the episodes
          <input
            type="range"
            min="5"
            max="60"
            step="5"
            value={Math.round(100 * doseOf(chosen))}
            onInput={({ currentTarget }) => setChosen(withDose(chosen, Number(currentTarget.value) / 100))}
          />
        </label>
        <label>
          seed
          <input
            type="number"
            min="0"
            step="1"
            value={chosen.seed}
            onInput={({ currentTarget }) =>
              setChosen({ ...chosen, seed: chosenIn(`seed=${currentTarget.value}`).seed })
            }
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
      <p class="verdict" data-verdict aria-live="polite">
        {runs.views === undefined ? 'Nothing is trained yet.' : verdict(compared(first, second))}
      </p>
      {runs.views !== undefined && (
        <div class="pair">
          {views.map((run, i) => {
            const { name = '', compares = '' } = variants[i] ?? {};
            return (
              <RunPart
                key={name}
                {...{ name, compares, run }}
                colour={colourClass(i)}
                names={chosen.names ?? usualNames}
              />
            );
          })}
        </div>
      )}
      <Curves views={views} />
      <OwnRule chosen={chosen} onTrain={startWith} />
      <p class="notes">
        {onGpu(chosen) ? (
          <>
            Each run is a worker of this page: the training loop and the recipe of the command line, with kernels in
            WGSL on this browser's GPU. That is experimental.
          </>
        ) : (
          <>
            Each run is a worker of this page on one core: the training loop, the recipe and the kernels (C++ as
            WebAssembly) of the command line
            {chosen.names === undefined && (
              <>
                , where <code>{command(chosen)}</code> computes the same numbers. There faster kernels are the default
              </>
            )}
            . Before reinforcement, demonstrations taught both teams the old names, and that the new ones differ: that
            warm start may come as a file.
          </>
        )}{' '}
        The runs stay in this tab. One seed is one run, and no proof: the documentation has ten pairs with their
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

interface RunPartProps {
  readonly name: string;
  readonly compares: string;
  readonly colour: string;
  readonly run: RunView;
  /** The new names, in the order of the former ones. */
  readonly names: readonly string[];
}

/** How far a run is, and an episode of its last step. */
function RunPart({ name, compares, colour, run, names }: RunPartProps) {
  const { text, share } = standing(run);
  return (
    <section class="run" data-run={name}>
      <h2 class={colour}>{name}</h2>
      <p class="state">{compares}</p>
      {run.problem === undefined ? (
        <>
          <progress value={share} max={1} />
          <p class="state">{text}</p>
        </>
      ) : (
        <p class="notice bad">{run.problem}</p>
      )}
      <Names run={run} names={names} />
      {run.episode !== undefined && (
        <article class="episode">
          <header>
            <b>an episode of step {run.episode.step}</b>
            <span>{run.episode.episode.reward > 0 ? 'it passed' : 'it failed'}</span>
          </header>
          {run.episode.episode.turns.map((turn, i) => (
            <TurnPart key={i} turn={turn} />
          ))}
        </article>
      )}
    </section>
  );
}

/** The twelve names that the fixer has to find, and which it has found. */
function Names({ run, names }: Pick<RunPartProps, 'run' | 'names'>) {
  const count = formerNames.filter((former) => isFound(run.names[former])).length;
  return (
    <div class="names">
      <p class="state">
        the fixer has found <b data-found>{count}</b> of {names.length} names
      </p>
      <ul>
        {formerNames.map((former, i) => {
          const isKnown = isFound(run.names[former]);
          return (
            <li key={former} class={isKnown ? 'found' : ''} title={isKnown ? 'found' : 'not found yet'}>
              {former} → {isKnown ? names[i] : '?'}
            </li>
          );
        })}
      </ul>
    </div>
  );
}

/** The form with which a visitor makes the rule that the fixers have to find. */
function OwnRule({ chosen, onTrain }: { readonly chosen: Chosen; readonly onTrain: (chosen: Chosen) => void }) {
  const [names, setNames] = useState(chosen.names ?? usualNames);
  const problem = nameProblem(names);
  return (
    <details class="rule" open={chosen.names !== undefined}>
      <summary>Now with your own rule</summary>
      <p>
        Give the twelve commands other new names. The fixers have not seen them: each must find your names by trying.
      </p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (problem === undefined) onTrain({ ...chosen, names });
        }}
      >
        <div class="fields">
          {formerNames.map((former, i) => (
            <label key={former}>
              {former}
              <input
                type="text"
                name={former}
                maxLength={12}
                autocomplete="off"
                autocapitalize="none"
                spellcheck={false}
                value={names[i]}
                onInput={({ currentTarget }) =>
                  setNames(names.map((name, n) => (n === i ? currentTarget.value.trim() : name)))
                }
              />
            </label>
          ))}
        </div>
        {problem !== undefined && (
          <p class="notice bad" role="alert">
            {problem}
          </p>
        )}
        <button type="submit" class="main" disabled={problem !== undefined}>
          train with these names
        </button>
      </form>
    </details>
  );
}

function TurnPart({ turn: { agent, read, wrote, advantage } }: { readonly turn: ShownTurn }) {
  const sign = advantage === undefined || advantage === 0 ? '' : advantage > 0 ? ' good' : ' bad';
  return (
    <div class={`turn${sign}`}>
      <div class="what">
        <b>{agent}</b>
        <span>read “{read}”</span>
        {advantage !== undefined && (
          <span class="advantage">
            advantage {advantage > 0 ? '+' : ''}
            {significant(advantage)}
          </span>
        )}
      </div>
      <pre>{wrote || '(nothing)'}</pre>
    </div>
  );
}

/** The state of a run in words, and the finished share of the present part. */
function standing({ state, warmup, steps, progress }: RunView): { readonly text: string; readonly share: number } {
  const last = steps.at(-1);
  if (state === 'done') return { text: `done after ${steps.length} steps`, share: 1 };
  if (last !== undefined || progress !== undefined) {
    const pace =
      steps.length === 0 ? '' : `, ${significant(mean(steps.slice(-5).map(({ seconds }) => seconds)))} s a step`;
    const share = progress === undefined ? 0 : progress.done / progress.episodes;
    return { text: `reinforcement, ${steps.length} steps done${pace}`, share };
  }
  if (warmup === undefined) return { text: 'warm start: learning from demonstrations', share: 0 };
  const { step, steps: all, loss } = warmup;
  return { text: `warm start: step ${step} of ${all}, loss ${significant(loss)}`, share: step / all };
}

const norms = ({ steps }: RunView) => steps.map(({ policies }) => policies.fixer?.gradientNorm ?? Number.NaN);
const repairs = ({ steps }: RunView) => steps.map(({ agents }) => agents.fixer?.rewardMean ?? Number.NaN);

/** The curves of the runs as they grow. */
function Curves({ views }: { readonly views: readonly RunView[] }) {
  // Between two steps there is no value to draw.
  return useMemo(
    () => drawn(views),
    views.map(({ steps }) => steps),
  );
}

function drawn(views: readonly RunView[]) {
  const lines = (valuesOf: (run: RunView) => number[]): Line[] =>
    views.map((run, i) => {
      const steps = run.steps.map(({ step }) => step);
      return { name: variants[i]?.name ?? '', colour: i, points: pointsOf(steps, valuesOf(run)) };
    });
  const [passed, repaired] = [successes, repairs].map((of) => lines((run) => trailingMeans(of(run))));
  const smoothed = { hint: `Each point is the mean of the last ${TRAILING} steps.`, unit: 'share' } as const;
  return (
    <div class="curves">
      <Chart title="Episodes that pass" lines={passed ?? []} {...smoothed} sync="steps" />
      <Chart title="The fixer's repairs that pass" lines={repaired ?? []} {...smoothed} include={[0]} sync="steps" />
      <Chart title="The fixer's gradient norm" lines={lines(norms)} unit="number" logarithmic sync="steps" />
    </div>
  );
}

const place = document.getElementById('app');
if (place !== null) {
  place.replaceChildren();
  render(<App />, place);
}
