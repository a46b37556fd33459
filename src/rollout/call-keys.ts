/** The names of the random streams of calls. */
import type { Turn } from '../core/episode.js';
import type { Message, Tool, ToolChoice } from '../core/message.js';
import { digestOfIds, type RandomKey, randomKey } from '../core/random.js';
import type { RolloutContext } from './rollout-context.js';
import type { RunningEpisode } from './running-episode.js';

/** What an agent reads. */
interface ReadCall {
  readonly prompt: readonly number[];
  readonly messages: readonly Message[];
  readonly tools?: readonly Tool[];
  readonly toolChoice?: ToolChoice;
}

/**
 * The keys of an agent's calls in an episode. A key follows from what the agent reads and from how often it has read
 * the same before, and not from the call's place among the others: a team whose order of calls depends on a network
 * repeats itself all the same. A call that is given up gives its key back: made again, it is answered alike.
 *
 * Where an episode is played again from a turn on, the keys of the turns before it are what they were, by which their
 * answers are known; all others are the alternative's.
 */
export function keysOf(
  { seed }: RolloutContext,
  { request: { phase, step, task, sample, branch } }: RunningEpisode,
  agent: string,
): (read: ReadCall) => { readonly key: RandomKey; readonly fixed?: Turn; readonly giveBack: () => void } {
  const fixed = new Map(branch?.fixed.map((turn) => [turn.id, turn]));
  const earlier = new Map<string, { next: number; readonly free: number[] }>();
  return ({ prompt, ...read }) => {
    const digest = prompt.length > 0 ? digestOfIds(prompt) : randomKey(...textsOf(read));
    const counts = earlier.get(`${digest}`) ?? { next: 0, free: [] };
    earlier.set(`${digest}`, counts);
    const count = counts.free.sort((a, b) => a - b).shift() ?? counts.next++;
    const key = randomKey(seed, phase, step, task.id, sample, agent, ...digest, count);
    const giveBack = () => counts.free.push(count);
    if (branch === undefined) return { key, giveBack };
    const turn = fixed.get(nameOf(key));
    return turn === undefined
      ? { key: randomKey(...key, 'alternative', branch.number), giveBack }
      : { key, fixed: turn, giveBack };
  };
}

/** A key as 16 hexadecimal digits. */
export const nameOf = (key: RandomKey) => key.map((word) => word.toString(16).padStart(8, '0')).join('');

/** What an endpoint is sent, but for the ids of calls. */
function textsOf({ messages, tools = [], toolChoice }: Omit<ReadCall, 'prompt'>): string[] {
  const texts = messages.flatMap(({ role, content, toolCalls = [] }) => [
    ...[role, content],
    ...toolCalls.flatMap((call) => ['call', call.name, call.arguments]),
  ]);
  const offered = tools.map((tool) => JSON.stringify(tool));
  return [...texts, ...offered, ...(toolChoice === undefined ? [] : [JSON.stringify(toolChoice)])];
}
