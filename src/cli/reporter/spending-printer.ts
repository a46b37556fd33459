/** The tokens of agents, and their cost if a policy has a price. */
import type { RunSpending, Spending, TokenCount } from '../../base/host.js';
import { duration, grouped, short, significant, table, wrap } from './text-layout.js';

/** The tokens of a run or an evaluation by agent, in total and per episode. */
export function spendingLines({ agents, episodes, seconds, updated, ...all }: RunSpending, width: number): string[] {
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
  const note = `of ${grouped(episodes)} episodes in ${duration(seconds)}; trained: prompts and responses of the turns that agents learned from; ${short(updated)} tokens went through the updates, where equal rows count once and rows without an advantage not at all; an episode: read plus written, per episode`;
  return [...table([header, ...rows]), ...wrap(note, width)];
}

/** The expected tokens per episode by agent, and the expected cost of the run. */
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
    ...table([
      ['an episode', 'read', 'written', 'trained at most', ...(cost === undefined ? [] : ['run costs'])],
      ...rows,
    ]),
    ...(cost === undefined ? [] : wrap(`the run costs about ${significant(cost)}, without a warm start`, width)),
  ];
}

const cells = ({ read, written, trained }: TokenCount) => [read, written, trained].map(short);
