import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { ListedRun, RunFacts } from '../../../../src/runs/analysis.js';
import { StateBadge } from '../parts/state-badge.js';
import { agoText, clean, intervalText, overlap, pointsText, scoreText } from '../parts/texts.js';
import { addressOf, go, runAddress } from '../routes.js';
import { useHeard, useSource } from '../run-store.js';

/** True once the one run or ablation of a folder was opened by itself; who comes back wants the list. */
let opened = false;

/** The runs of the folder: their settings, state and scores. */
export function RunsPage() {
  const { live } = useSource();
  const { list, problem } = useHeard([]);
  const [text, setText] = useState('');
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const field = useRef<HTMLInputElement>(null);
  const runs = list?.runs ?? [];
  const shown = useMemo(() => runs.filter((run) => matches(run, text)), [runs, text]);

  useEffect(() => {
    const [only, ...others] = runs;
    if (opened || only === undefined) return;
    opened = true;
    if (others.length === 0) location.replace(runAddress(only.name));
    else if (only.ablation !== null && others.every(({ ablation }) => ablation === only.ablation))
      location.replace(addressOf({ page: 'ablation', name: only.ablation }));
    else if (!live) location.replace(addressOf({ page: 'compare', names: runs.map(({ name }) => name) }));
  }, [runs, live]);

  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if (event.key !== '/' || event.target === field.current) return;
      event.preventDefault();
      field.current?.focus();
    };
    addEventListener('keydown', listen);
    return () => removeEventListener('keydown', listen);
  }, []);

  if (problem !== undefined) return <p class="notice bad">{clean(problem)}</p>;
  if (list === undefined) return <p class="empty">reading the folder …</p>;
  if (list.preparing === true)
    return (
      <p class="empty" role="status">
        drmas is preparing the run: it reads the recipe and the tasks. The run shows up by itself.
      </p>
    );
  const toggle = (name: string) => {
    const next = new Set(chosen);
    if (!next.delete(name)) next.add(name);
    setChosen(next);
  };
  return (
    <>
      <div class="controls">
        <h1>{clean(list.folder)}</h1>
        <span class="faint">
          {runs.length} {runs.length === 1 ? 'run' : 'runs'}
        </span>
        <input
          ref={field}
          type="search"
          placeholder="name, recipe, estimator, state  ( / )"
          aria-label="show runs with these words"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <button
          type="button"
          class="main"
          disabled={chosen.size < 2}
          onClick={() => go({ page: 'compare', names: [...chosen] })}
        >
          {chosen.size < 2 ? 'choose two runs to compare' : `compare ${chosen.size} runs`}
        </button>
      </div>
      {runs.length === 0 ? (
        <p class="empty">
          No runs here yet. <code>npx drmas train repair</code> makes one; it shows up by itself.
        </p>
      ) : (
        <RunTable runs={shown} ablations={list.ablations.map(({ name }) => name)} chosen={chosen} toggle={toggle} />
      )}
      {runs.length > 0 && shown.length === 0 && <p class="empty">No run has all of these words.</p>}
    </>
  );
}

interface RunTableProps {
  readonly runs: readonly ListedRun[];
  readonly ablations: readonly string[];
  readonly chosen: ReadonlySet<string>;
  readonly toggle: (name: string) => void;
}

function RunTable({ runs, ablations, chosen, toggle }: RunTableProps) {
  const groups = [...new Set(runs.map(({ ablation }) => ablation ?? ''))];
  return (
    <div class="scroll">
      <table class="runs">
        <thead>
          <tr>
            <th scope="col" aria-label="chosen for a comparison" />
            <th scope="col">run</th>
            <th scope="col">state</th>
            <th scope="col">held-out score, gain</th>
            <th scope="col">reward</th>
            <th scope="col">estimator</th>
            <th scope="col">seed</th>
            <th scope="col">steps</th>
            <th scope="col">spikes</th>
            <th scope="col">began</th>
          </tr>
        </thead>
        {groups.map((group) => (
          <tbody key={group}>
            {ablations.includes(group) && (
              <tr class="group">
                <th colSpan={10} scope="rowgroup">
                  <a href={addressOf({ page: 'ablation', name: group })}>{clean(group)}</a>{' '}
                  <span class="faint">an ablation: means of its variants, and their differences</span>
                </th>
              </tr>
            )}
            {runs
              .filter(({ ablation }) => (ablation ?? '') === group)
              .map((run) => (
                <RunRow key={run.name} run={run} chosen={chosen.has(run.name)} toggle={() => toggle(run.name)} />
              ))}
          </tbody>
        ))}
      </table>
    </div>
  );
}

interface RunRowProps {
  readonly run: ListedRun;
  readonly chosen: boolean;
  readonly toggle: () => void;
}

function RunRow({ run, chosen, toggle }: RunRowProps) {
  const short = run.ablation === null ? run.name : run.name.slice(run.ablation.length + 1);
  if (run.state === 'unreadable')
    return (
      <tr class="unreadable">
        <td />
        <th scope="row">{clean(short)}</th>
        <td>
          <StateBadge state={run.state} />
        </td>
        <td colSpan={7} class="faint wide">
          {clean(run.problem)}
        </td>
      </tr>
    );
  return (
    <tr class={chosen ? 'chosen' : ''}>
      <td>
        <input type="checkbox" checked={chosen} onChange={toggle} aria-label={`compare ${clean(run.name)}`} />
      </td>
      <th scope="row">
        <a href={runAddress(run.name)}>{clean(short)}</a>
        {run.recipe !== null && !short.startsWith(run.recipe) && <span class="faint"> {clean(run.recipe)}</span>}
      </th>
      <td>
        <StateBadge state={run.state} />
      </td>
      <td>
        <ScoreBar first={run.first} last={run.last} headline={run.headline} />
      </td>
      <td>
        <Sparkline values={run.rewards} label="training reward" />
      </td>
      <td>{clean(run.estimator ?? '')}</td>
      <td class="number" data-what="seed">
        {run.seed ?? ''}
      </td>
      <td class="number">
        <Steps run={run} />
      </td>
      <td class="number" data-what="spikes">
        {run.spikes === 0 ? '' : run.spikes}
      </td>
      <td class="faint">{agoText(run.started)}</td>
    </tr>
  );
}

export function Steps({ run }: { readonly run: Exclude<ListedRun, { state: 'unreadable' }> }) {
  const { steps, plannedSteps, warmStart } = run;
  if (warmStart !== null && steps === 0)
    return (
      <span title="warm start">
        warm {warmStart.step}/{warmStart.steps}
      </span>
    );
  return (
    <span class="steps">
      {steps}
      {plannedSteps === null ? '' : `/${plannedSteps}`}
      {plannedSteps !== null && <progress value={steps} max={Math.max(1, plannedSteps)} aria-hidden="true" />}
    </span>
  );
}

function matches(run: ListedRun, text: string): boolean {
  const facts = run.state === 'unreadable' ? [] : [run.recipe, run.team, run.estimator, `seed ${run.seed}`];
  const all = [run.name, run.state, ...facts].join(' ').toLowerCase();
  return text
    .toLowerCase()
    .split(/\s+/)
    .every((word) => all.includes(word));
}

const WIDTH = 120;
const HEIGHT = 26;

/** A small line of values without axes. All runs share the scale from 0 to 1, unless a reward lies beyond it. */
function Sparkline({ values, label }: { readonly values: readonly number[]; readonly label: string }) {
  if (values.length < 2) return <span class="faint">–</span>;
  const low = values.reduce((a, b) => Math.min(a, b), 0);
  const range = values.reduce((a, b) => Math.max(a, b), 1) - low;
  const at = (value: number, i: number) => {
    const x = (i / (values.length - 1)) * (WIDTH - 4) + 2;
    return `${x.toFixed(1)},${(HEIGHT - 3 - ((value - low) / range) * (HEIGHT - 6)).toFixed(1)}`;
  };
  return (
    <svg class="sparkline" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={label}>
      <polyline points={values.map(at).join(' ')} />
    </svg>
  );
}

/** A score with its interval on a scale from 0 to 1, the first one as a tick, and the gain beside it. */
function ScoreBar({ first, last, headline }: Pick<RunFacts, 'first' | 'last' | 'headline'>) {
  if (last === null) return <span class="faint">no score yet</span>;
  if (headline === 'reward')
    return (
      <span class="score" title={`mean reward at step ${last.step}`}>
        <b>{scoreText(last, headline)}</b>{' '}
        <span class="faint">
          reward{first === null || first.step === last.step ? '' : `, first ${scoreText(first, headline)}`}
        </span>
      </span>
    );
  const at = (value: number) => 2 + 96 * Math.min(1, Math.max(0, value));
  const gain = first === null || first.step === last.step ? undefined : last.averageAtK - first.averageAtK;
  return (
    <span class="score" title={`avg@k ${scoreText(last)} ${intervalText(last)} at step ${last.step}`}>
      <b>{scoreText(last)}</b>
      <svg viewBox="0 0 100 14" preserveAspectRatio="none" aria-hidden="true">
        <line class="rail" x1="2" x2="98" y1="7" y2="7" />
        {first !== null && <line class="from" x1={at(first.averageAtK)} x2={at(first.averageAtK)} y1="2" y2="12" />}
        <line class="span" x1={at(last.low)} x2={at(last.high)} y1="7" y2="7" />
        <line class="at" x1={at(last.averageAtK)} x2={at(last.averageAtK)} y1="1" y2="13" />
      </svg>
      <span class={gain === undefined || (first && overlap(first, last)) ? 'faint' : gain >= 0 ? 'gain' : 'loss'}>
        {gain === undefined ? intervalText(last) : pointsText(gain)}
      </span>
    </span>
  );
}
