/** Training samples: turns as a policy learns from them and as models score them. */
import type { Episode, Turn } from '../../core/episode.js';
import type { TrainingSample } from '../../core/sample.js';

/** What some losses need of a turn. */
interface LossInputs {
  /** Log-probs of the response [R], where the loss holds the policy near a reference. */
  readonly referenceLogprobs?: Float32Array | undefined;
  /** The tokens that the policy wrote in the turn's episode, where the loss weighs episodes. */
  readonly episodeTokens?: number | undefined;
}

/** The turn's prompt and response as one sequence; token for token what was fed and sampled. */
export function trainingSample(
  turn: Turn,
  advantage: number | readonly number[],
  { referenceLogprobs, episodeTokens }: LossInputs = {},
): TrainingSample {
  const { prompt, response, logprobs } = turn;
  const length = prompt.length + response.length;
  const sample = {
    tokens: Int32Array.from([...prompt, ...response]),
    mask: new Uint8Array(length).fill(1, prompt.length),
    behaviourLogprobs: new Float32Array(length),
    advantages: new Float32Array(length),
    temperature: turn.temperature,
    policyVersion: turn.policyVersion,
    agent: turn.agent,
    ...(episodeTokens === undefined ? {} : { episodeTokens }),
  };
  sample.behaviourLogprobs.set(logprobs, prompt.length);
  if (typeof advantage === 'number') sample.advantages.fill(advantage, prompt.length);
  else sample.advantages.set(advantage, prompt.length);
  if (referenceLogprobs === undefined) return sample;
  const reference = new Float32Array(length);
  reference.set(referenceLogprobs, prompt.length);
  return { ...sample, referenceLogprobs: reference };
}

/** The response tokens of the turns by episode. */
export function tokensByEpisode(
  turns: readonly { readonly episode: Episode; readonly turn: Turn }[],
): ReadonlyMap<Episode, number> {
  const tokens = new Map<Episode, number>();
  for (const { episode, turn } of turns) tokens.set(episode, (tokens.get(episode) ?? 0) + turn.response.length);
  return tokens;
}

/**
 * One number for each response token of each turn [R], from a model that gives a row for every sample [T]. Turns of
 * equal tokens go through it once.
 */
export async function scoreTurns(
  turns: readonly Turn[],
  score: (samples: readonly TrainingSample[]) => Promise<readonly Float32Array[]>,
): Promise<Map<Turn, Float32Array>> {
  const distinct = new Map<string, Turn>();
  const keys = turns.map(({ prompt, response, temperature }) => `${temperature} ${prompt} ${response}`);
  turns.forEach((turn, i) => {
    const key = keys[i] as string;
    if (!distinct.has(key)) distinct.set(key, turn);
  });
  const rows = await score(Array.from(distinct.values(), (turn) => trainingSample(turn, 0)));
  const byKey = new Map(Array.from(distinct.keys(), (key, i) => [key, rows[i] as Float32Array]));
  return new Map(
    turns.map((turn, i) => [turn, (byKey.get(keys[i] as string) as Float32Array).subarray(turn.prompt.length)]),
  );
}
