import { significant } from '@drmas/engine/host';
import { useEffect, useState } from 'preact/hooks';
import type { ShownEpisode, ShownGroup, ShownTurn } from '../../../../../src/runs/analysis.js';
import { colourClass } from '../../chart/theme.js';
import { clean } from '../../parts/texts.js';
import { type HeardRun, useSource } from '../../run-store.js';
import { TurnView } from './turn-view.js';

interface GroupViewProps {
  readonly run: HeardRun;
  readonly file: string;
  readonly task: string;
  /** The agent whose turns come first; empty for any. */
  readonly agent: string;
}

export function GroupView({ run, file, task, agent }: GroupViewProps) {
  const source = useSource();
  const [group, setGroup] = useState<ShownGroup>();
  const [problem, setProblem] = useState<string>();
  useEffect(() => {
    let wanted = true;
    source.group(run.name, file, task).then(
      (found) => {
        if (!wanted) return;
        setProblem(undefined);
        setGroup(found);
      },
      (error: Error) => wanted && setProblem(error.message),
    );
    return () => {
      wanted = false;
    };
  }, [source, run.name, file, task]);
  if (problem !== undefined) return <p class="notice bad">{clean(problem)}</p>;
  if (group === undefined) return <p class="empty">reading …</p>;
  const colours = new Map(agentsOf(run, group).map((name, i) => [name, i]));
  return (
    <>
      <div class="question">
        <b>{clean(group.task)}</b>
        {group.data !== '' && <pre>{clean(group.data)}</pre>}
      </div>
      <div class="siblings">
        {group.episodes.map((episode) => (
          <EpisodeView
            key={`${group.task} ${episode.sample}`}
            episode={episode}
            place={{ run: run.name, file, task: group.task }}
            colours={colours}
            agent={agent}
          />
        ))}
      </div>
    </>
  );
}

/** All agents, the run's agents first, so that each has the colour of its charts. */
function agentsOf({ log }: HeardRun, { episodes }: ShownGroup): string[] {
  const playing = episodes.flatMap(({ turns }) => turns.map((turn) => turn.agent));
  return [...new Set([...log.agents, ...playing])];
}

interface EpisodeViewProps {
  readonly episode: ShownEpisode;
  readonly place: { readonly run: string; readonly file: string; readonly task: string };
  readonly colours: ReadonlyMap<string, number>;
  readonly agent: string;
}

function EpisodeView({ episode, place, colours, agent }: EpisodeViewProps) {
  const { sample, reward, parts, agents, metrics, outcome, log, failure, turns } = episode;
  const numbers = [
    ...(Object.keys(parts).length > 1 ? Object.entries(parts) : []),
    ...Object.entries(agents).map(([name, value]) => [`for ${name}`, value] as const),
    ...Object.entries(metrics),
  ];
  return (
    <article class="episode">
      <header>
        <b>reward {significant(reward)}</b> <span class="faint">sample {sample}</span>
        {numbers.map(([name, value]) => (
          <span key={name} class="fact">
            {clean(name)} {significant(value)}
          </span>
        ))}
      </header>
      {turns.length > 1 && <CallMap turns={turns} colours={colours} />}
      {failure !== null && <p class="notice bad">failed: {clean(failure)}</p>}
      {turns.map((turn, i) => (
        <TurnView
          key={i}
          turn={turn}
          place={{ ...place, sample, turn: i }}
          colour={colourClass(colours.get(turn.agent) ?? 0)}
          reads={turn.reads.map((earlier) => `${turns[earlier]?.agent ?? ''} (${earlier + 1})`)}
          dimmed={agent !== '' && turn.agent !== agent}
        />
      ))}
      {log.length > 0 && (
        <dl class="log">
          {log.map(([name, value], i) => (
            <div key={i}>
              <dt>{clean(name)}</dt>
              <dd>{clean(value)}</dd>
            </div>
          ))}
        </dl>
      )}
      {outcome !== '' && (
        <p class="outcome">
          <span class="faint">outcome</span> {clean(outcome)}
        </p>
      )}
    </article>
  );
}

const ACROSS = 34;
const DOWN = 20;
const LEFT = 12;
/** The most turns of a map; longer episodes show only the list of turns. */
const MOST_TURNS = 40;

interface CallMapProps {
  readonly turns: readonly ShownTurn[];
  readonly colours: ReadonlyMap<string, number>;
}

/** The calls of an episode: a lane an agent, a node a turn, an arc from each turn to the turns that read it. */
function CallMap({ turns, colours }: CallMapProps) {
  const shown = turns.slice(0, MOST_TURNS);
  const lanes = [...new Set(shown.map(({ agent }) => agent))];
  const x = (i: number) => LEFT + i * ACROSS;
  const y = (i: number) => 10 + lanes.indexOf(shown[i]?.agent ?? '') * DOWN;
  const width = x(shown.length - 1) + LEFT;
  const height = lanes.length * DOWN;
  return (
    <div class="callmap">
      <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={inWords(shown)}>
        {shown.flatMap(({ reads }, i) =>
          reads.map((from) => (
            <path
              key={`${from} ${i}`}
              d={`M${x(from)},${y(from)} Q${(x(from) + x(i)) / 2},${(y(from) + y(i)) / 2 - 9} ${x(i)},${y(i)}`}
            />
          )),
        )}
        {shown.map((turn, i) => (
          <g key={i} class={colourClass(colours.get(turn.agent) ?? 0)}>
            <circle class={turn.valid ? '' : 'invalid'} cx={x(i)} cy={y(i)} r="6">
              <title>
                {`${i + 1}. ${clean(turn.agent)}, reward ${significant(turn.reward)}${turn.valid ? '' : ', invalid'}`}
              </title>
            </circle>
          </g>
        ))}
      </svg>
      <span class="lanes">
        {lanes.map((agent) => (
          <span key={agent} class={colourClass(colours.get(agent) ?? 0)}>
            {clean(agent)}
          </span>
        ))}
      </span>
    </div>
  );
}

const inWords = (turns: readonly ShownTurn[]) =>
  turns
    .map(({ agent, reads }, i) => {
      const whom = reads.map((from) => `${turns[from]?.agent} (${from + 1})`).join(', ');
      return `${i + 1}. ${clean(agent)}${whom === '' ? '' : `, which read ${whom}`}`;
    })
    .join('; ');
