/**
 * A trunk with an adapter for each agent. The rows of each agent pass through the trunk and the agent's own adapter,
 * one agent after the other. The gradient of the trunk is the sum over all rows; an adapter's gradient comes from the
 * rows of its agent alone.
 */
import { ArgumentError } from '../../errors.js';
import type { Kernels } from '../../tensor/kernels.js';
import { Decoder, type DecoderOptions, type SequenceScores, type Upstream } from './decoder.js';
import type { Sequence } from './packed-batch.js';
import type { Gradient, ModelWeights, TrunkWeights } from './weights/model-weights.js';

/** A sequence with the agent whose adapter it passes through. '' is no agent: the trunk alone. */
export interface AgentSequence extends Sequence {
  readonly agent?: string | undefined;
}

interface AgentPart {
  readonly agent: string;
  readonly indices: readonly number[];
  readonly sequences: readonly AgentSequence[];
}

export class AgentDecoders {
  /** By agent; '' has the trunk alone. */
  readonly #decoders: ReadonlyMap<string, Decoder>;

  constructor(kernels: Kernels, { trunk, adapters }: TrunkWeights, options: DecoderOptions) {
    const weightsOf = (adapter: ModelWeights['adapter']) => ({ decoder: trunk, adapter, trained: undefined });
    const all = [['', undefined] as const, ...adapters];
    this.#decoders = new Map(
      all.map(([agent, adapter]) => [agent, new Decoder(kernels, weightsOf(adapter), options)] as const),
    );
  }

  /** Computes the log-probs of sequences. @throws ArgumentError for an agent without an adapter */
  async score(sequences: readonly AgentSequence[]): Promise<SequenceScores> {
    return this.#joined(sequences, (part) => this.#decoder(part.agent).score(part.sequences));
  }

  /** As `Decoder.accumulate`, with the gradients of the agents' adapters in `gradient.adapters`. */
  async accumulate(
    sequences: readonly AgentSequence[],
    { flat, decoder, adapters }: Gradient,
    upstream: Upstream,
    entropyUpstream?: Upstream,
  ): Promise<SequenceScores> {
    return this.#joined(sequences, ({ agent, indices, sequences: some }) => {
      const adapter = adapters?.get(agent);
      const gradient = { flat, ...(decoder && { decoder }), ...(adapter && { adapter }) };
      const among =
        (of: Upstream): Upstream =>
        (at, rows) =>
          of(
            at.map((i) => indices[i] as number),
            rows,
          );
      return this.#decoder(agent).accumulate(
        some,
        gradient,
        among(upstream),
        entropyUpstream && among(entropyUpstream),
      );
    });
  }

  /** Computes something for the sequences of each agent, in the order of the agents' first sequences. */
  async #joined(
    sequences: readonly AgentSequence[],
    compute: (part: AgentPart) => Promise<SequenceScores>,
  ): Promise<SequenceScores> {
    const logprobs: Float32Array[] = [];
    const entropies: Float32Array[] = [];
    for (const part of partsOf(sequences)) {
      const scores = await compute(part);
      part.indices.forEach((index, i) => {
        logprobs[index] = scores.logprobs[i] as Float32Array;
        entropies[index] = scores.entropies[i] as Float32Array;
      });
    }
    return { logprobs, entropies };
  }

  #decoder(agent: string): Decoder {
    const decoder = this.#decoders.get(agent);
    if (decoder !== undefined) return decoder;
    const known = [...this.#decoders.keys()].filter((name) => name !== '');
    throw new ArgumentError(`agent '${agent}' has no adapter: expected one of ${known.join(', ')}`);
  }
}

function partsOf(sequences: readonly AgentSequence[]): AgentPart[] {
  const agents = [...new Set(sequences.map(({ agent = '' }) => agent))];
  return agents.map((of) => {
    const indices = [...sequences.keys()].filter((i) => (sequences[i]?.agent ?? '') === of);
    return { agent: of, indices, sequences: indices.map((i) => sequences[i] as AgentSequence) };
  });
}
