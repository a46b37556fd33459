/** Policies and endpoints of a program elsewhere, as those see them who play episodes away from it. */

import type {
  GenerateRequest,
  Generation,
  PlayableHandle,
  TextBackend,
  TextRequest,
  Utterance,
} from '@drmas/engine/contract';
import { given, messageOf, RecipeError, TrainingError } from '@drmas/engine/errors';
import type { Episode } from '@drmas/engine/nouns';
import { createTokenizer } from '@drmas/engine/tokens';
import type { EpisodeRequest, RolloutContext, RolloutSettings } from './rollout-context.js';

/** An episode to play, without what who plays it has itself. */
export type PlayRequest = Pick<
  EpisodeRequest,
  'task' | 'sample' | 'phase' | 'step' | 'sampling' | 'versions' | 'replay' | 'judged'
>;

export type SpeakerRequest = GenerateRequest | TextRequest;

/** For each name either the policy's tokenizer and context, or `endpoint`. */
export type KnownSpeakers = Readonly<
  Record<string, { readonly tokenizer: unknown; readonly context: number } | 'endpoint'>
>;

/** The settings of a run's rollouts, as far as they can be copied. */
export interface RemoteSettings extends Omit<RolloutSettings, 'cleanupMs' | 'concurrency'> {
  readonly policies: KnownSpeakers;
}

/** @throws RecipeError for a policy of a user's backend whose tokenizer a thread or a worker cannot make */
export function remoteSettings(context: RolloutContext): RemoteSettings {
  const { agents, policies, seed, maxTurns, timeoutMs, maxOutcomeBytes, partWeights, rewardRetries } = context;
  const known = Object.entries(policies).map(([name, policy]) => [
    name,
    'endpoint' in policy ? 'endpoint' : { tokenizer: describedTokenizer(name, policy), context: policy.context },
  ]);
  return {
    agents,
    seed,
    maxTurns,
    timeoutMs,
    policies: Object.fromEntries(known),
    ...given({ maxOutcomeBytes, partWeights, rewardRetries }),
  };
}

function describedTokenizer(name: string, { tokenizer }: PlayableHandle): unknown {
  const description = tokenizer.toJSON();
  try {
    createTokenizer(description);
  } catch (error) {
    const why = `the tokenizer of '${name}' cannot be made in a thread or a worker: ${messageOf(error)}`;
    throw new RecipeError(`${why}; expected episodes in this program (type 'program', isolate false)`, 'rollout');
  }
  return description;
}

export type AskSpeaker = (
  policy: string,
  request: SpeakerRequest,
  signal?: AbortSignal,
) => Promise<Generation & Utterance>;

/** Policies and endpoints by name. Each sends its requests to the program. */
export function remoteSpeakers(known: KnownSpeakers, ask: AskSpeaker): RolloutContext['policies'] {
  const handleOf = (policy: string, speaker: KnownSpeakers[string]): RolloutContext['policies'][string] => {
    if (speaker === 'endpoint') {
      const endpoint: TextBackend = { complete: (request, signal) => ask(policy, request, signal) };
      return { endpoint };
    }
    const handle: PlayableHandle = {
      tokenizer: createTokenizer(speaker.tokenizer),
      context: speaker.context,
      generate: (request, signal) => ask(policy, request, signal),
    };
    return handle;
  };
  return Object.fromEntries(Object.entries(known).map(([policy, speaker]) => [policy, handleOf(policy, speaker)]));
}

/** Has a policy or an endpoint of this program answer. @throws TrainingError for one that cannot answer this */
export function answerOf(
  policies: RolloutContext['policies'],
  policy: string,
  request: SpeakerRequest,
  signal: AbortSignal,
): Promise<Generation | Utterance> {
  const speaker = policies[policy];
  if (speaker !== undefined && 'prompt' in request && 'generate' in speaker) return speaker.generate(request, signal);
  if (speaker !== undefined && 'messages' in request && 'endpoint' in speaker)
    return speaker.endpoint.complete(request, signal);
  throw new TrainingError(`the team's code asks '${policy}', which cannot answer it`);
}

/** An episode whose outcome or values hold what cannot be copied, such as functions: they are kept as JSON has them. */
export function readable(played: Episode): Episode {
  const turns = played.turns.map((turn) => ({ ...turn, value: jsonOf(turn.value) }));
  return { ...played, turns, outcome: jsonOf(played.outcome) };
}

function jsonOf(value: unknown): unknown {
  try {
    return JSON.parse(JSON.stringify(value));
  } catch {
    return undefined;
  }
}
