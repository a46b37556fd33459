import type { Sampling } from '@drmas/engine/contract';
import { type AgentModel, answer, promptOf, samplingOf } from '@drmas/engine/endpoints';
import { ArgumentError } from '@drmas/engine/errors';
import { randomKey } from '@drmas/engine/math';
import { assistant, type Message, user } from '@drmas/engine/nouns';

export class Chat {
  readonly #agentModel: AgentModel;
  readonly #sampling: Sampling;
  readonly #seed: number;
  #messages: Message[] = [];
  #said = 0;

  constructor(agentModel: AgentModel, { seed, ...chosen }: Partial<Sampling> & { readonly seed: number }) {
    this.#agentModel = agentModel;
    this.#sampling = samplingOf(agentModel, chosen);
    this.#seed = seed;
  }

  reset(): void {
    this.#messages = [];
  }

  /**
   * Sends a message and keeps it with the answer; if the answer is stopped, with the part that arrived.
   * @param onText Receives the answer piece by piece
   * @throws ArgumentError if the conversation has become longer than the model's context; the last message is then
   *   removed
   */
  async say(text: string, signal: AbortSignal, onText: (text: string) => void): Promise<void> {
    const messages = [...this.#messages, user(text)];
    const prompt = promptOf(this.#agentModel, messages);
    const { context } = this.#agentModel.model;
    const room = context - prompt.length;
    if (room < 1)
      throw new ArgumentError(
        `the conversation has ${prompt.length} tokens, the model reads ${context}: /reset begins a new one`,
      );
    const sampling = { ...this.#sampling, maxTokens: Math.min(room, this.#sampling.maxTokens) };
    const key = randomKey('chat', this.#seed, this.#said++);
    let given = '';
    try {
      await answer(this.#agentModel, { prompt, sampling, key }, signal, (piece) => {
        given += piece;
        onText(piece);
      });
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    this.#messages = [...messages, assistant(given)];
  }
}
