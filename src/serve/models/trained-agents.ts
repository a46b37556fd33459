import { BackendError, DialectError, requireKnown, suggestion } from '@drmas/engine/errors';
import { nodeHost } from '@drmas/engine/platform';
import { wholeAnswer } from '../../gateway/dialects.js';
import { agentModel } from '../../gateway/index.js';
import type { LanguageModel } from '../../teams/index.js';
import { answerStream } from './answer-stream.js';
import { type AgentModelsRequest, type OpenAgentModels, openAgentModels } from './open-agent-models.js';

/** The options of `trainedAgents`. */
export interface TrainedAgentsOptions extends Pick<AgentModelsRequest, 'checkpoint' | 'acceptChanges'> {
  /** Threads that compute; by default one for each core. */
  readonly threads?: number;
  /** Receives notices for people, for example that a model is being downloaded. */
  readonly onNotice?: (message: string) => void;
}

/** Trained agents in this process, as models. */
export interface TrainedAgents extends AsyncDisposable {
  /**
   * An agent as a model of AI SDK's interface. It samples as in evaluations unless a call overrides that (temperature,
   * topP, topK, seed, stop sequences, length). It reads its system prompt in front of each conversation and calls
   * tools in its format. A stream starts when the answer is complete. A call of an unknown agent rejects with an error
   * that names it.
   */
  model(agent: string): LanguageModel;
  /** Stops all answers and frees the memory, as the end of the process does. Later calls reject. */
  dispose(): Promise<void>;
}

/**
 * The trained agents of a run, or an exported agent, for programs after training: `trainable` uses them outside of
 * episodes. drmas reads no file before the first call, so a module may create them and still be trained.
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
  requireKnown<TrainedAgentsOptions>(options, { threads: true, onNotice: true, checkpoint: true, acceptChanges: true });
  const { threads, onNotice = () => {}, ...place } = options;
  const disposed = new AbortController();
  let opened: Promise<OpenAgentModels> | undefined;
  const open = (): Promise<OpenAgentModels> => {
    disposed.signal.throwIfAborted();
    opened ??= openAgentModels({ from, ...place }, nodeHost({ threads, notify: onNotice })).catch((error: unknown) => {
      opened = undefined; // the cause may be fixed before the next call
      throw error;
    });
    return opened;
  };
  const dispose = async () => {
    disposed.abort(new BackendError(`the agents of ${from} were disposed of`));
    await opened?.then(
      (agentModels) => agentModels.dispose(),
      () => {},
    );
  };
  const model = (agent: string) =>
    agentModel(
      agent,
      async (request, signal) => {
        const { agentModels } = await open();
        const agentModel = agentModels.get(agent);
        if (agentModel === undefined)
          throw new DialectError(
            404,
            'model_not_found',
            `${from} has no agent '${agent}'${suggestion(agent, [...agentModels.keys()])}`,
          );
        const until = signal === undefined ? disposed.signal : AbortSignal.any([signal, disposed.signal]);
        return wholeAnswer(answerStream(agentModel, request, until));
      },
      'call',
    );
  return { model, dispose, [Symbol.asyncDispose]: dispose };
}
