import { significant } from '../../../../src/base/host.js';
import type { ShownTurn } from '../../../../src/runs/analysis.js';
import { colourClass } from '../../chart/theme.js';
import { clean } from '../../parts/texts.js';

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
export function CallMap({ turns, colours }: CallMapProps) {
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
