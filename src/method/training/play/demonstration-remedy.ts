/** Advice about outputs that do not fit, in a run whose agents have seen demonstrations. */
import { remedyOfFailure } from '@drmas/engine/host';
import { RandomStream } from '@drmas/engine/math';
import type { EpisodeGroup, Failure, Message, Trace } from '@drmas/engine/nouns';
import type { DemonstrationSource, RunSettings } from '../run/run-settings.js';
import { drawTrace } from './step-tasks.js';

/** Demonstrations that are looked at, and the length of the longest shown prompt. */
const DRAWN = 256;
const LONGEST = 300;

export type Remedy = (failure: Failure, groups: readonly Pick<EpisodeGroup, 'episodes'>[]) => string;

/**
 * The advice about a failure. If a model writes outputs that do not fit although it has seen demonstrations of its
 * agent, the advice compares their system prompts with those that the agent read.
 */
export function remedyBesideDemonstrations({
  demonstrations,
  warmStartShare,
}: Pick<RunSettings, 'demonstrations' | 'warmStartShare'>): Remedy {
  return ({ reason, agent }, groups) => {
    const drawn = warmStartShare === undefined ? [] : drawnDemonstrations(demonstrations);
    const shown = drawn.filter((trace) => trace.agent === agent);
    if (reason !== 'invalid-output' || shown.length === 0) return remedyOfFailure(reason);
    const own = agent === undefined ? undefined : demonstrations.systemPrompts[agent];
    const seen = new Set(shown.map(({ system }) => own ?? system ?? ''));
    const turns = groups.flatMap(({ episodes }) => episodes).flatMap((episode) => episode.turns ?? []);
    const read = new Set(turns.filter((turn) => turn.agent === agent).map(({ messages }) => systemOf(messages)));
    const [other] = [...read].filter((prompt) => !seen.has(prompt));
    if (own !== undefined || other === undefined)
      return 'The model has seen demonstrations with this prompt, and does not keep to them yet. Give the warm start more steps or more demonstrations, or use a larger model or a simpler schema. Code that catches the error decides itself what the episode earns.';
    return `The demonstrations of '${agent}' have another system prompt than the agent reads in play, so the model has not learnt to answer it. In the demonstrations: ${quoted([...seen][0] ?? '')}; in play: ${quoted(other)}. Write the prompt of play into the demonstrations: \`drmas learn\` and \`recordDemonstrations\` do it.`;
  };
}

export function drawnDemonstrations({ sources: { train } }: DemonstrationSource): Trace[] {
  const drawn = Array.from({ length: DRAWN }, (_, i) =>
    drawTrace(train, new RandomStream('demonstrations of advice', i), 'train'),
  );
  return drawn.filter((trace) => trace !== undefined);
}

const systemOf = ([first]: readonly Message[]) => (first?.role === 'system' ? first.content : '');

const quoted = (text: string) => JSON.stringify(text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text);
