/** Training samples: chains of turns in the form that policies learn from and models score. */
import type { Episode, Span, TrainingSample, Turn } from '@drmas/engine/nouns';
import type { TurnChain } from './chains.js';

interface WeighedTurn {
  readonly turn: Turn;
  /** One number for all response tokens, or one for each [R]. */
  readonly advantage: number | readonly number[];
  /** Log-probs of the response under the reference [R], if the loss has a KL penalty. */
  readonly referenceLogprobs?: Float32Array | undefined;
}

/** The position of a turn's response in its own tokens, and in the tokens of each turn that continues it. */
export const spanOf = ({ prompt, response }: Turn): Span => ({
  start: prompt.length,
  end: prompt.length + response.length,
});

/**
 * The turns of a chain as one sequence: the prompt and the response of its last turn, token for token as the model read
 * and sampled them. A chain may have one turn.
 * @param episodeTokens The number of tokens that the policy wrote in the turns' episode, if the loss weighs episodes
 */
export function trainingSample(chain: readonly WeighedTurn[], episodeTokens?: number): TrainingSample {
  const last = chain.at(-1) as WeighedTurn;
  const { prompt, response, temperature, policyVersion, agent } = last.turn;
  const length = prompt.length + response.length;
  const sample = {
    tokens: new Int32Array(length),
    mask: new Uint8Array(length),
    ...(chain.length > 1 ? { spans: chain.map(({ turn }) => spanOf(turn)) } : {}),
    behaviourLogprobs: new Float32Array(length),
    advantages: new Float32Array(length),
    temperature,
    policyVersion,
    agent,
    ...(episodeTokens === undefined ? {} : { episodeTokens }),
    ...(last.referenceLogprobs === undefined ? {} : { referenceLogprobs: new Float32Array(length) }),
  };
  sample.tokens.set(prompt);
  sample.tokens.set(response, prompt.length);
  for (const { turn, advantage, referenceLogprobs } of chain) {
    const { start, end } = spanOf(turn);
    sample.mask.fill(1, start, end);
    sample.behaviourLogprobs.set(turn.logprobs, start);
    if (typeof advantage === 'number') sample.advantages.fill(advantage, start, end);
    else sample.advantages.set(advantage, start);
    if (referenceLogprobs !== undefined) sample.referenceLogprobs?.set(referenceLogprobs, start);
  }
  return sample;
}

export function tokensByEpisode(
  turns: readonly { readonly episode: Episode; readonly turn: Turn }[],
): ReadonlyMap<Episode, number> {
  const tokens = new Map<Episode, number>();
  for (const { episode, turn } of turns) tokens.set(episode, (tokens.get(episode) ?? 0) + turn.response.length);
  return tokens;
}

/**
 * One number for each response token of each turn [R], from a model that returns a row for each sample [T]. Chains with
 * equal tokens are scored once.
 */
export async function scoreTurns(
  chains: readonly TurnChain[],
  score: (samples: readonly TrainingSample[]) => Promise<readonly Float32Array[]>,
): Promise<Map<Turn, Float32Array>> {
  const distinct = new Map<string, TurnChain>();
  const keys = chains.map((chain) => {
    const { prompt, response, temperature } = chain.at(-1) as Turn;
    return [temperature, prompt, response, ...chain.map((turn) => Object.values(spanOf(turn)))].join(' ');
  });
  chains.forEach((chain, i) => {
    const key = keys[i] as string;
    if (!distinct.has(key)) distinct.set(key, chain);
  });
  const samples = Array.from(distinct.values(), (chain) =>
    trainingSample(chain.map((turn) => ({ turn, advantage: 0 }))),
  );
  const rows = await score(samples);
  const byKey = new Map(Array.from(distinct.keys(), (key, i) => [key, rows[i] as Float32Array]));
  return new Map(
    chains.flatMap((chain, i) => {
      const row = byKey.get(keys[i] as string) as Float32Array;
      return chain.map((turn) => {
        const { start, end } = spanOf(turn);
        return [turn, row.subarray(start, end)] as const;
      });
    }),
  );
}
