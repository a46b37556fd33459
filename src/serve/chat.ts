import { answer, promptOf, samplingOf, type Voice } from '../backends/voice.js';
import type { Sampling } from '../contract/sampling.js';
import { ArgumentError } from '../core/errors.js';
import { assistant, type Message, user } from '../core/message.js';
import { randomKey } from '../core/random.js';

/** A conversation with one agent, which remembers what was said. */
export class Chat {
  readonly #voice: Voice;
  readonly #sampling: Sampling;
  readonly #seed: number;
  #messages: Message[] = [];
  #said = 0;

  constructor(voice: Voice, { seed, ...chosen }: Partial<Sampling> & { readonly seed: number }) {
    this.#voice = voice;
    this.#sampling = samplingOf(voice, chosen);
    this.#seed = seed;
  }

  /** Forgets what was said. */
  reset(): void {
    this.#messages = [];
  }

  /**
   * Says something, and remembers it with the answer; of an answer that is stopped the part that was given.
   * @param onText Receives the answer piece by piece
   * @throws ArgumentError where the conversation has become longer than the model's context; what was said last is
   *   forgotten
   */
  async say(text: string, signal: AbortSignal, onText: (text: string) => void): Promise<void> {
    const messages = [...this.#messages, user(text)];
    const prompt = promptOf(this.#voice, messages);
    const { context } = this.#voice.model;
    const room = context - prompt.length;
    if (room < 1)
      throw new ArgumentError(
        `the conversation has ${prompt.length} tokens, the model reads ${context}: /reset begins a new one`,
      );
    const sampling = { ...this.#sampling, maxTokens: Math.min(room, this.#sampling.maxTokens) };
    const key = randomKey('chat', this.#seed, this.#said++);
    let given = '';
    try {
      await answer(this.#voice, { prompt, sampling, key }, signal, (piece) => {
        given += piece;
        onText(piece);
      });
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    this.#messages = [...messages, assistant(given)];
  }
}
