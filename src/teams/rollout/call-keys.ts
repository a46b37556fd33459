/** The names of the random streams of calls. */

import { digestOfIds, type RandomKey, randomKey } from '@drmas/engine/math';
import type { Message, Tool, ToolChoice, Turn } from '@drmas/engine/nouns';
import type { EpisodeRequest, Replay, RolloutContext } from './rollout-context.js';
import type { RunningEpisode } from './running-episode.js';

interface KeyedPrompt {
  readonly prompt: readonly number[];
  readonly messages: readonly Message[];
  readonly tools?: readonly Tool[];
  readonly toolChoice?: ToolChoice | undefined;
}

/**
 * The keys of an agent's calls in an episode. A key follows from the agent's prompt and from the number of earlier
 * calls with the same prompt, not from the call's place among the others: a team whose order of calls depends on a
 * network repeats itself all the same. A call that is given up gives its key back, and has the same answer when it is
 * repeated.
 *
 * If an episode is played again from a turn on, the turns before it keep their keys, by which their answers are found.
 * All other keys belong to the replay.
 */
export function keysOf(
  { seed }: RolloutContext,
  { request: { phase, step, task, sample, replay } }: RunningEpisode,
  agent: string,
): (read: KeyedPrompt) => { readonly key: RandomKey; readonly fixed?: Turn; readonly giveBack: () => void } {
  const earlier = new Map<string, { next: number; readonly free: number[] }>();
  return (read) => {
    const digest = digestOfPrompt(read);
    const name = nameOf(digest);
    const counts = earlier.get(name) ?? { next: 0, free: [] };
    earlier.set(name, counts);
    const count = counts.free.sort((a, b) => a - b).shift() ?? counts.next++;
    const key = randomKey(seed, phase, step, task.id, sample, agent, ...digest, count);
    const giveBack = () => counts.free.push(count);
    if (replay === undefined) return { key, giveBack };
    const id = nameOf(key);
    const turn = replay.fixed.find((each) => each.id === id);
    return turn === undefined ? { key: alternative(key, replay), giveBack } : { key, fixed: turn, giveBack };
  };
}

const alternative = (key: RandomKey, { number }: Replay) => randomKey(...key, 'alternative', number);

/**
 * Whether `keysOf` may have named a call: whether it is the agent's call with this prompt in this episode.
 * @param run.calls The most calls that the episode may have made, those of judges included
 */
export function isCallName(
  name: string,
  { seed, calls }: Pick<RolloutContext, 'seed'> & { readonly calls: number },
  { phase, step, task, sample, replay }: Pick<EpisodeRequest, 'phase' | 'step' | 'task' | 'sample' | 'replay'>,
  agent: string,
  read: KeyedPrompt,
): boolean {
  const digest = digestOfPrompt(read);
  for (let count = 0; count < calls; count++) {
    const key = randomKey(seed, phase, step, task.id, sample, agent, ...digest, count);
    if (nameOf(key) === name || (replay !== undefined && nameOf(alternative(key, replay)) === name)) return true;
  }
  return false;
}

const digestOfPrompt = (read: KeyedPrompt) =>
  read.prompt.length > 0 ? digestOfIds(read.prompt) : randomKey(...textsOf(read));

export const nameOf = (key: RandomKey) => key.map((word) => word.toString(16).padStart(8, '0')).join('');

/** The texts that an endpoint gets, without the ids of calls. */
function textsOf({ messages, tools = [], toolChoice }: KeyedPrompt): string[] {
  const texts = messages.flatMap(({ role, content, toolCalls = [] }) => [
    ...[role, content],
    ...toolCalls.flatMap((call) => ['call', call.name, call.arguments]),
  ]);
  const offered = tools.map((tool) => JSON.stringify(tool));
  return [...texts, ...offered, ...(toolChoice === undefined ? [] : [JSON.stringify(toolChoice)])];
}
