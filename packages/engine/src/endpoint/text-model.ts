/** A model that a function of the recipe answers for: any program that turns messages into text. */
import { z } from 'zod';
import type { TextBackend, TextRequest, Utterance } from '../contract/text-backend.js';
import { copyWithSource, EndpointError, inPlainWords, issuesText, plainCopy, shown } from '../errors.js';
import { priceSchema } from './endpoint-spec.js';
import { requestLine } from './request-line.js';

/** The answer of a function: the text, and the rest as far as it is known. */
export type TextReply = Pick<Utterance, 'text'> & Partial<Utterance>;

/**
 * Answers a request, or throws: then the episode fails that asked.
 * @param signal Fires when nobody waits for the answer any more
 */
export type CompleteText = (request: TextRequest, signal: AbortSignal) => TextReply | Promise<TextReply>;

/** The settings of a function that answers for a model, as recipe.json records them: all but the function. */
export const textModelSchema = z.strictObject({
  type: z.literal('text'),
  name: z.string().min(1).default('a function').describe('The name of the model in reports.'),
  concurrency: z
    .int()
    .min(1)
    .default(8)
    .describe('The most calls at the same time, for all agents with this function together. Further ones wait.'),
  price: priceSchema,
});

export type TextModelSpec = z.output<typeof textModelSchema>;

/** A function that answers for a frozen agent, as a recipe's author writes it. Only `complete` is required. */
export interface TextModelOptions {
  /** Answers a request with at least a text. */
  readonly complete: CompleteText;
  /** The name of the model in reports. */
  readonly name?: string | undefined;
  /** The most calls at the same time, for all agents with this function together. Further ones wait. */
  readonly concurrency?: number | undefined;
  /**
   * The price of a million tokens, in your currency. With a price, and with counts of tokens in the replies,
   * evaluations and steps report the cost.
   */
  readonly price?: { readonly read?: number | undefined; readonly write?: number | undefined } | undefined;
}

const count = z.int().min(0).optional();
const reply = z.object({
  text: z.string(),
  reasoning: z.string().optional(),
  toolCalls: z.array(z.object({ id: z.string(), name: z.string(), arguments: z.string() })).optional(),
  providerData: z.record(z.string(), z.unknown()).optional(),
  finishReason: z.enum(['stop', 'length']).default('stop'),
  promptTokens: count,
  responseTokens: count,
});

/** The model of a function. @param name The agent, for errors */
export function openTextModel(name: string, { concurrency }: TextModelSpec, complete: CompleteText): TextBackend {
  const ask = requestLine({ concurrency, place: `assign.${name}` });
  return {
    complete: (request, signal) =>
      ask(signal, async () => {
        const answer = await complete(ownRequest(request), signal);
        const read = reply.safeParse(answer, { error: inPlainWords });
        if (read.success) return read.data as Utterance;
        // The next answer of the same program has the same form, so the run need not wait for more of them.
        throw new EndpointError(
          `assign.${name}: complete returned ${shown(answer)}, expected { text }: ${issuesText(read.error.issues)}`,
        );
      }),
  };
}

/** A request that the function may change: the turn keeps its messages and tools as the agent read them. */
function ownRequest(request: TextRequest): TextRequest {
  const { messages, tools } = request;
  const offered = tools?.map((tool) => ({ ...tool, parameters: copyWithSource(tool.parameters) }));
  return { ...request, messages: plainCopy(messages), ...(offered === undefined ? {} : { tools: offered }) };
}
