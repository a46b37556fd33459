import type { GenerateRequest, Generation, SampleBackend, Sampling } from '../../src/contract/sampling.js';
import type { Tokenizer } from '../../src/core/tokenizer.js';
import { bytesTokenizer } from '../../src/model/tokenizers/bytes.js';
import type { RolloutContext } from '../../src/rollout/rollout-context.js';
import type { Team } from '../../src/teams/team.js';

interface Asked {
  readonly policy: string;
  /** The prompt as text. */
  readonly prompt: string;
  readonly request: GenerateRequest;
  /** Position of the request among all that arrived. */
  readonly index: number;
  readonly signal: AbortSignal | undefined;
}

/** Says what the script says: a text, or ids as they are. */
export type Script = (asked: Asked) => string | number[] | Promise<string | number[]>;

/** A sampler that answers from a script, with the stop token appended to texts, and remembers what it was asked. */
export function scriptedSampler(script: Script, tokenizer: Tokenizer = bytesTokenizer()) {
  const asked: Asked[] = [];
  const generate = async (request: GenerateRequest, signal?: AbortSignal): Promise<Generation> => {
    const ask = {
      policy: request.policy,
      prompt: tokenizer.decode(request.prompt),
      request,
      index: asked.length,
      signal,
    };
    asked.push(ask);
    const said = await script(ask);
    const tokens = typeof said === 'string' ? [...tokenizer.encode(said), ...request.stopTokens] : said;
    const finishReason = request.stopTokens.includes(tokens.at(-1) ?? -1) ? 'stop' : 'length';
    return { tokens, logprobs: tokens.map(() => -1), finishReason, policyVersion: 3 };
  };
  const backend: SampleBackend = {
    generate,
    sync: async () => ({ version: 3 }),
    pause: async () => {},
    resume: async () => {},
    health: async () => ({ ok: true, running: 0, waiting: 0 }),
  };
  return { ...backend, asked };
}

const sampling: Sampling = { temperature: 1, topP: 1, topK: 0, maxTokens: 16 };

/** A context in which every agent of the team has a policy of its own name. */
export function contextFor(
  team: Team,
  sampler: SampleBackend,
  changes: Partial<RolloutContext> = {},
  tokenizer: Tokenizer = bytesTokenizer(),
): RolloutContext {
  const names = Object.keys(team.agents);
  const penaltyOf = (name: string) => team.agents[name]?.invalidPenalty ?? 0;
  return {
    sampler,
    agents: Object.fromEntries(
      names.map((name) => [name, { policy: name, sampling, invalidPenalty: penaltyOf(name) }]),
    ),
    policies: Object.fromEntries(names.map((name) => [name, { tokenizer, context: 4096 }])),
    seed: 1,
    maxTurns: 16,
    timeoutMs: 5_000,
    ...changes,
  };
}
