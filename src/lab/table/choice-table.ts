/** A table of logits over named choices, with its gradient and its optimiser: a policy without a language model. */

import {
  type GenerateRequest,
  type Generation,
  type OptimStepResult,
  type OptimStepSettings,
  scaleOfDraws,
  scaleOfScores,
} from '@drmas/engine/contract';
import { ArgumentError } from '@drmas/engine/errors';
import type { HostKernels } from '@drmas/engine/kernels';
import { uniformAt } from '@drmas/engine/math';
import {
  type ChoiceTableSpec,
  clippedStep,
  contextOf,
  FlatOptimizer,
  gradientNorm,
  requireFinite,
  type Sequence,
  type SequenceScores,
  type TrainedPart,
  tableSize,
  type Upstream,
} from '@drmas/engine/model';

/** The names and the length that decide the shape of a table. */
export type TableShape = Omit<ChoiceTableSpec, 'type'>;

/** Where the predicted tokens of a sequence are, and the rows that predict them. */
interface Predicted {
  readonly positions: readonly number[]; // [N]
  readonly rows: readonly number[]; // [N]
  readonly targets: Int32Array; // [N]
  readonly inverseTemperature: Float32Array; // [N]
}

/**
 * The choices have the ids 0 to C - 1, and the features have the ids after them. The row of the last token decides the
 * next token. Each feature has a row. If responses are longer than one choice, each choice has a row too. A response
 * ends when its last token has no row.
 */
export class ChoiceTable implements TrainedPart {
  readonly shape: TableShape;
  readonly values: Float32Array; // [rows, C], 0 at first: all choices are equally likely
  readonly gradient: Float32Array; // [rows, C]
  readonly optimizer: FlatOptimizer;
  readonly #kernels: HostKernels;

  constructor(kernels: HostKernels, shape: TableShape) {
    const size = tableSize(shape);
    this.shape = shape;
    this.values = kernels.allocate(size);
    this.gradient = kernels.allocate(size);
    this.optimizer = new FlatOptimizer(kernels, size);
    this.#kernels = kernels;
  }

  tensorsOf(logits: Float32Array): object {
    return { logits };
  }

  /** The longest prompt, one feature, and response together. */
  get context(): number {
    return contextOf(this.shape);
  }

  /** Computes the log-probs of sequences. @throws ArgumentError if a token has no row, or is no choice */
  async score(sequences: readonly Sequence[]): Promise<SequenceScores> {
    return this.#run(sequences, () => {});
  }

  /**
   * Scores the sequences and adds the gradient of a loss, as `Decoder.accumulate` does.
   * @returns The scores, and the norm of the gradient of this call
   */
  async accumulate(
    sequences: readonly Sequence[],
    upstream: Upstream,
    entropyUpstream?: Upstream,
  ): Promise<SequenceScores & { readonly gradientNorm: number }> {
    const kernels = this.#kernels;
    const choices = this.shape.choices.length;
    const added = kernels.allocate(this.values.length);
    const scores = this.#run(sequences, (index, predicted, { logits, row, logSumExp, entropy }) => {
      const { positions, rows, targets, inverseTemperature } = predicted;
      const picked = (values: Float32Array) => Float32Array.from(positions, (t) => values[t] as number);
      const [dRow] = upstream([index], [row]) as readonly [Float32Array];
      const dLogprobs = picked(dRow);
      const count = positions.length;
      if (entropyUpstream === undefined)
        kernels.tokenLogprobsBackward({
          logits,
          dLogprobs,
          logSumExp,
          targets,
          inverseTemperature,
          rows: count,
          vocabSize: choices,
        });
      else {
        const entropies = new Float32Array(row.length);
        positions.forEach((t, n) => {
          entropies[t] = entropy[n] as number;
        });
        const [dEntropies] = entropyUpstream([index], [entropies]) as readonly [Float32Array];
        const dEntropy = picked(dEntropies);
        const [dLogits, inverse] = [logits, inverseTemperature];
        kernels.tokenEntropyBackward({
          logits: dLogits,
          dLogprobs,
          dEntropy,
          logSumExp,
          entropy,
          targets,
          inverseTemperature: inverse,
          rows: count,
          vocabSize: choices,
        });
      }
      rows.forEach((at, n) => {
        kernels.add({
          out: added.subarray(at * choices),
          x: logits.subarray(n * choices, (n + 1) * choices),
          length: choices,
        });
      });
    });
    kernels.add({ out: this.gradient, x: added, length: added.length });
    return { ...scores, gradientNorm: await gradientNorm(kernels, [added]) };
  }

  /** Clips by the norm of the gradient, updates the table, and clears the gradient. */
  optimStep(settings: OptimStepSettings): Promise<OptimStepResult> {
    return clippedStep(this.#kernels, [this], settings);
  }

  /** @throws NonFiniteError if a logit or, with `optimizer`, a number of the optimiser's state is not finite */
  requireFinite(counts: { readonly optimizer: boolean }): Promise<void> {
    return requireFinite(this.#kernels, this, counts);
  }

  /**
   * Samples a response from these logits, a copy of `values`; draw number n of the request's stream gives choice n.
   * @throws ArgumentError when the prompt is empty or leaves no room, or its last token has no row
   */
  sample(logits: Float32Array, request: GenerateRequest): Omit<Generation, 'policyVersion'> {
    const { prompt, stopTokens, maxTokens, temperature, topK, topP, key } = request;
    if (prompt.length < 1 || prompt.length >= this.context)
      throw new ArgumentError(`a prompt of ${prompt.length} tokens leaves no room in a context of ${this.context}`);
    const choices = this.shape.choices.length;
    const most = Math.min(maxTokens, this.context - prompt.length);
    const [token, logprob] = [new Int32Array(1), new Float32Array(1)];
    const inverse = Float32Array.of(scaleOfDraws(temperature));
    const [tokens, logprobs]: [number[], number[]] = [[], []];
    let last = prompt.at(-1) as number;
    while (tokens.length < most) {
      const at = this.#rowOf(last) * choices;
      const row = logits.slice(at, at + choices);
      const uniform = Float32Array.of(uniformAt(key, tokens.length));
      this.#kernels.sampleTokens({
        tokens: token,
        logprobs: logprob,
        logits: row,
        uniforms: uniform,
        inverseTemperature: inverse,
        topK: Int32Array.of(topK),
        topP: Float32Array.of(topP),
        rows: 1,
        vocabSize: choices,
      });
      last = token[0] as number;
      tokens.push(last);
      logprobs.push(logprob[0] as number);
      if (stopTokens.includes(last) || this.shape.length === 1) return { tokens, logprobs, finishReason: 'stop' };
    }
    return { tokens, logprobs, finishReason: 'length' };
  }

  #run(
    sequences: readonly Sequence[],
    afterScores: (
      index: number,
      predicted: Predicted,
      pass: Readonly<Record<'logits' | 'row' | 'logSumExp' | 'entropy', Float32Array>>,
    ) => void,
  ): SequenceScores {
    const choices = this.shape.choices.length;
    const entropies: Float32Array[] = [];
    const logprobs = sequences.map((sequence, index) => {
      const predicted = this.#predictedIn(sequence);
      const { positions, rows, targets, inverseTemperature } = predicted;
      const logits = new Float32Array(rows.length * choices);
      rows.forEach((at, n) => {
        logits.set(this.values.subarray(at * choices, (at + 1) * choices), n * choices);
      });
      const scores = () => new Float32Array(rows.length);
      const [ofTokens, logSumExp, entropy] = [scores(), scores(), scores()];
      this.#kernels.tokenLogprobs({
        logprobs: ofTokens,
        logSumExp,
        entropy,
        logits,
        targets,
        inverseTemperature,
        rows: rows.length,
        vocabSize: choices,
      });
      const [row, spread] = [new Float32Array(sequence.tokens.length), new Float32Array(sequence.tokens.length)];
      positions.forEach((t, n) => {
        row[t] = ofTokens[n] as number;
        spread[t] = entropy[n] as number;
      });
      entropies.push(spread);
      afterScores(index, predicted, { logits, row, logSumExp, entropy });
      return row;
    });
    return { logprobs, entropies };
  }

  #predictedIn({ tokens, mask, temperature }: Sequence): Predicted {
    if (mask[0] === 1) throw new ArgumentError('the first token of a sequence cannot be predicted: its mask must be 0');
    const positions = [...mask.keys()].filter((t) => mask[t] === 1);
    const targets = Int32Array.from(positions, (t) => tokens[t] as number);
    const stranger = targets.find((id) => id < 0 || id >= this.shape.choices.length);
    if (stranger !== undefined)
      throw new ArgumentError(`token ${stranger} is no choice of ${this.shape.choices.length}`);
    return {
      positions,
      targets,
      rows: positions.map((t) => this.#rowOf(tokens[t - 1] as number)),
      inverseTemperature: new Float32Array(positions.length).fill(scaleOfScores(temperature)),
    };
  }

  /** The row of logits after a token. Rows of features come first. */
  #rowOf(token: number): number {
    const { choices, features, length } = this.shape;
    const feature = token - choices.length;
    if (feature >= 0 && feature < features.length) return feature;
    if (length > 1 && token >= 0 && feature < 0) return features.length + token;
    throw new ArgumentError(`token ${token} has no row in a table of ${features.length} features`);
  }
}
