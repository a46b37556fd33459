import { significant } from '../../../src/base/host.js';
import { mean } from '../../../src/base/math.js';
import type { ShownTurn } from '../run/shown-episode.js';
import type { RunView } from './run-view.js';

interface RunPartProps {
  readonly name: string;
  readonly compares: string;
  readonly colour: string;
  readonly run: RunView;
}

/** How far a run is, and an episode of its last step. */
export function RunPart({ name, compares, colour, run }: RunPartProps) {
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
