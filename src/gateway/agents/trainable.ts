import { ArgumentError, isObject, requireKnown } from '@drmas/engine/errors';
import type { LanguageModel, ModelResult, ModelStreamPart, ModelWarning } from '../../teams/index.js';
import { ALL_URLS, playedModel } from './ai-sdk-model.js';
import { callsOfCaller, currentCalls } from './attribution.js';

/** A model of any version of AI SDK's interface that is in use. */
export interface AnyLanguageModel {
  readonly specificationVersion: string;
  readonly provider: string;
  readonly modelId: string;
}

/** The options of `trainable`. */
export interface TrainableOptions {
  /** The model outside of training: AI SDK's interface, version 2, 3 or 4. Without it a call there is an error. */
  readonly otherwise?: AnyLanguageModel;
}

/**
 * A model that is an agent of the team while an episode is played, and `otherwise` at all other times. Use it in the
 * program's place for a model, at the top of a module or in a function: it finds the episode at the time of the call,
 * through AsyncLocalStorage. The file that you train is then the file that runs in production.
 *
 * It has the interface version of `otherwise`, since frameworks may inspect the version long before a call.
 *
 * @throws ArgumentError for an invalid agent name, for a model given as a string, and for another version
 *
 * @example
 * ```ts
 * import { trainable } from 'drmas/agents';
 * import { generateText } from 'ai';
 *
 * const solver = trainable('solver');
 * const solve = async (prompt: string) => (await generateText({ model: solver, prompt })).text;
 * ```
 */
export function trainable(agent: string, options: TrainableOptions = {}): LanguageModel {
  if (typeof agent !== 'string' || agent === '')
    throw new ArgumentError(`trainable(...): expected the name of an agent, got ${String(agent)}`);
  requireKnown<TrainableOptions>(options, { otherwise: true }, `trainable('${agent}', ...): unknown key`);
  const { otherwise } = options;
  const outside = otherwise && checkedModel(agent, otherwise);
  const version = outside?.specificationVersion ?? 'v3';
  const inside = (): LanguageModel | undefined => {
    const calls = callsOfCaller();
    if (calls !== undefined) return playedModel(agent, calls);
    if (outside !== undefined) return undefined;
    throw new ArgumentError(
      `trainable('${agent}') was called outside of an episode; expected trainable('${agent}', { otherwise }) ` +
        'with the model to use there',
    );
  };
  const shown = () => (currentCalls() === undefined ? outside : undefined);
  const model = {
    specificationVersion: version,
    get provider() {
      return shown()?.provider ?? 'drmas';
    },
    get modelId() {
      return shown()?.modelId ?? agent;
    },
    get supportedUrls() {
      return shown()?.supportedUrls ?? ALL_URLS;
    },
    doGenerate: async (call: never) => {
      const ours = inside();
      if (ours === undefined) return outside?.doGenerate(call);
      const result = await ours.doGenerate(call);
      return version === 'v2' ? asVersion2(result) : result;
    },
    doStream: async (call: never) => {
      const ours = inside();
      if (ours === undefined) return outside?.doStream(call);
      const { stream } = await ours.doStream(call);
      return { stream: version === 'v2' ? stream.pipeThrough(toVersion2()) : stream };
    },
  };
  return model as unknown as LanguageModel; // callers use it as the version that it shows
}

/** A model that passes its calls on without reading them. */
interface OutsideModel extends AnyLanguageModel {
  readonly supportedUrls?: unknown;
  doGenerate(call: never): unknown;
  doStream(call: never): unknown;
}

const VERSIONS: readonly unknown[] = ['v2', 'v3', 'v4'];

function checkedModel(agent: string, model: AnyLanguageModel): OutsideModel {
  const version: unknown = isObject(model) ? model.specificationVersion : undefined;
  if (VERSIONS.includes(version)) return model as OutsideModel;
  throw new ArgumentError(
    `trainable('${agent}', { otherwise }): expected a model of AI SDK's interface, version 2, 3 or 4, such as ` +
      `openai('gpt-5-mini'); got ${isObject(model) ? `an object of version ${String(version)}` : typeof model}`,
  );
}

/** An answer as the second version of the interface spells it. */
const asVersion2 = (result: ModelResult) => ({
  ...result,
  ...endOfVersion2(result),
  warnings: warningsOfVersion2(result.warnings),
});

const toVersion2 = () =>
  new TransformStream<ModelStreamPart>({
    transform: (part, controller) => {
      if (part.type === 'finish') controller.enqueue({ ...part, ...endOfVersion2(part) });
      else if (part.type === 'stream-start')
        controller.enqueue({ ...part, warnings: warningsOfVersion2(part.warnings) });
      else controller.enqueue(part);
    },
  });

function endOfVersion2({ finishReason, usage }: Pick<ModelResult, 'finishReason' | 'usage'>) {
  const inputTokens = usage.inputTokens.total;
  const { total: outputTokens, reasoning: reasoningTokens } = usage.outputTokens;
  return {
    finishReason: finishReason.unified,
    usage: { inputTokens, outputTokens, reasoningTokens, totalTokens: inputTokens + outputTokens },
  };
}

const warningsOfVersion2 = (warnings: readonly ModelWarning[]) =>
  warnings.map(({ feature, details }) => ({ type: 'other', message: `${feature}: ${details}` }));
