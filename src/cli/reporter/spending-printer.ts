/** The tokens of agents, and what they cost where a policy has a price. */
import type { RunSpending } from '../../core/play/run-spending.js';
import type { Spending, TokenCount } from '../../core/play/token-count.js';
import { duration, grouped, short, significant, table, wrap } from './text-layout.js';

/** What a run or an evaluation has spent by agent, in all and an episode. */
export function spendingLines({ agents, episodes, seconds, ...all }: RunSpending, width: number): string[] {
  const each = ({ tokens, cost }: Spending) => [
    short((tokens.read + tokens.written) / Math.max(1, episodes)),
    ...(all.cost === undefined ? [] : [cost === undefined ? '-' : significant(cost)]),
  ];
  const rows = [...Object.entries(agents), ['all', all] as const].map(([name, spending]) => [
    name,
    ...cells(spending.tokens),
    ...each(spending),
  ]);
  const header = ['tokens', 'read', 'written', 'trained', 'an episode', ...(all.cost === undefined ? [] : ['cost'])];
  const note = `of ${grouped(episodes)} episodes in ${duration(seconds)}; trained: prompts and responses in updates; an episode: read and written`;
  return [...table([header, ...rows]), ...wrap(note, width)];
}

/** The tokens of an episode by agent, as they are expected, and what the run's cost. */
export function expectedLines(
  agents: Readonly<Record<string, { readonly episode: TokenCount; readonly cost?: number }>>,
  cost: number | undefined,
  width: number,
): string[] {
  const rows = Object.entries(agents).map(([name, agent]) => [
    name,
    ...cells(agent.episode),
    ...(cost === undefined ? [] : [agent.cost === undefined ? '-' : significant(agent.cost)]),
  ]);
  return [
    ...table([['an episode', 'read', 'written', 'trained', ...(cost === undefined ? [] : ['run costs'])], ...rows]),
    ...(cost === undefined ? [] : wrap(`the run costs about ${significant(cost)}, a warm start aside`, width)),
  ];
}

const cells = ({ read, written, trained }: TokenCount) => [read, written, trained].map(short);
