import { agentModel } from '../agents/ai-sdk-model.js';
import { BackendError, DialectError } from '../core/errors.js';
import { wholeAnswer } from '../dialects/answer-parts.js';
import { nodeHost } from '../platform/node-host.js';
import { suggestion } from '../recipe/explain.js';
import type { LanguageModel } from '../teams/language-model.js';
import { answerStream } from './answer-stream.js';
import { type OpenVoices, openVoices, type VoicesRequest } from './open-voices.js';

export interface TrainedAgentsOptions extends Pick<VoicesRequest, 'checkpoint' | 'acceptChanges'> {
  /** Threads that compute; by default one for each core. */
  readonly threads?: number;
  /** Receives what a person should know, such as that a model is downloaded. */
  readonly onNotice?: (message: string) => void;
}

/** Trained agents in this process, as models. */
export interface TrainedAgents extends AsyncDisposable {
  /**
   * An agent as a model of AI SDK's interface. It samples as in evaluations where a call does not say otherwise
   * (temperature, topP, topK, seed, stop sequences, length), reads its system prompt in front of every conversation,
   * and calls tools in its format. A stream comes when the answer is complete. A call of an agent that is not there
   * rejects by name.
   */
  model(agent: string): LanguageModel;
  /** Ends what is being answered and gives the memory back, as the end of the process does. Later calls reject. */
  dispose(): Promise<void>;
}

/**
 * The trained agents of a run, or an exported one, for programs that go on after training: `trainable` asks them where
 * no episode is played. Nothing is read before the first call, so a module may name them and be trained all the same.
 *
 * @param from The directory of a run or of an exported agent
 * @example
 * ```ts
 * import { trainedAgents } from 'drmas';
 * import { trainable } from 'drmas/agents';
 *
 * const agents = trainedAgents('runs/shop');
 * export const buyer = trainable('buyer', { otherwise: agents.model('buyer') });
 * ```
 */
export function trainedAgents(from: string, options: TrainedAgentsOptions = {}): TrainedAgents {
  const { threads, onNotice = () => {}, ...place } = options;
  const disposed = new AbortController();
  let opened: Promise<OpenVoices> | undefined;
  const open = (): Promise<OpenVoices> => {
    disposed.signal.throwIfAborted();
    opened ??= openVoices({ from, ...place }, nodeHost({ threads, notify: onNotice })).catch((error: unknown) => {
      opened = undefined; // what was wrong may be mended meanwhile
      throw error;
    });
    return opened;
  };
  const dispose = async () => {
    disposed.abort(new BackendError(`the agents of ${from} were disposed of`));
    await opened?.then(
      (voices) => voices.dispose(),
      () => {},
    );
  };
  const model = (agent: string) =>
    agentModel(
      agent,
      async (request, signal) => {
        const { voices } = await open();
        const voice = voices.get(agent);
        if (voice === undefined)
          throw new DialectError(
            404,
            'model_not_found',
            `${from} has no agent '${agent}'${suggestion(agent, [...voices.keys()])}`,
          );
        const until = signal === undefined ? disposed.signal : AbortSignal.any([signal, disposed.signal]);
        return wholeAnswer(answerStream(voice, request, until));
      },
      'call',
    );
  return { model, dispose, [Symbol.asyncDispose]: dispose };
}
