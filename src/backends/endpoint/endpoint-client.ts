/** A frozen agent's model behind the chat completions of OpenAI, asked through OpenAI's own client. */
import { APIError, OpenAI } from 'openai';
import pLimit from 'p-limit';
import { z } from 'zod';
import type { TextBackend, TextRequest, Utterance } from '../../contract/text-backend.js';
import { EndpointError, messageOf } from '../../core/errors.js';
import { issuesText } from '../../core/validation/issues.js';
import type { EndpointSpec } from './endpoint-spec.js';

/** So many requests in a row that fail, each after its repetitions, mean that the server is gone. */
const MOST_FAILURES = 32;
/** What no repetition changes: a key or a permission is missing, or there is no such model. */
const REFUSALS: readonly (number | undefined)[] = [401, 403, 404];

const completion = z.object({
  choices: z
    .array(z.object({ message: z.object({ content: z.string().nullish() }), finish_reason: z.string().nullish() }))
    .min(1),
  usage: z.object({ prompt_tokens: z.int().optional(), completion_tokens: z.int().optional() }).nullish(),
});

/** Connects to nothing yet. `environment` may hold OPENAI_API_KEY. */
export function openEndpoint(spec: EndpointSpec, environment: NodeJS.ProcessEnv = process.env): TextBackend {
  const { url, model, timeoutMs, retries, concurrency, body } = spec;
  const apiKey = spec.apiKey ?? environment.OPENAI_API_KEY ?? '';
  const client = new OpenAI({
    baseURL: url,
    apiKey: apiKey === '' ? 'none' : apiKey, // the client insists on one
    defaultHeaders: apiKey === '' ? { Authorization: null } : {},
    timeout: timeoutMs,
    maxRetries: retries,
  });
  const limited = pLimit(concurrency);
  let failures = 0;
  /** A server may repeat in its message what it was sent. */
  const shown = (error: unknown) =>
    `${url}: ${apiKey === '' ? reasonOf(error) : reasonOf(error).replaceAll(apiKey, '[API key]')}`;

  const ask = async (request: TextRequest, signal: AbortSignal): Promise<Utterance> => {
    const { messages, temperature, topP, maxTokens, seed } = request;
    const fields = { temperature, top_p: topP, max_tokens: maxTokens, seed, ...body };
    const sent = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
    const answer: unknown = await client.chat.completions.create(
      { ...sent, model, messages: messages.map(({ role, content }) => ({ role, content })) },
      { signal: AbortSignal.any([signal]) }, // the client leaves a listener behind on what it is given
    );
    return utterance(answer);
  };

  return {
    complete: (request, signal) =>
      limited(async () => {
        signal.throwIfAborted();
        try {
          const answer = await ask(request, signal);
          failures = 0;
          return answer;
        } catch (error) {
          signal.throwIfAborted();
          failures++;
          if (error instanceof APIError && REFUSALS.includes(error.status)) throw new EndpointError(shown(error));
          if (failures >= MOST_FAILURES)
            throw new EndpointError(`${failures} requests in a row failed, the last: ${shown(error)}`);
          throw new Error(shown(error));
        }
      }),
  };
}

/** @throws Error when it is not a chat completion */
function utterance(answer: unknown): Utterance {
  const parsed = completion.safeParse(answer);
  if (!parsed.success) throw new Error(`the answer is not a chat completion: ${issuesText(parsed.error.issues)}`);
  const [choice] = parsed.data.choices;
  const { prompt_tokens: promptTokens, completion_tokens: responseTokens } = parsed.data.usage ?? {};
  return {
    text: choice?.message.content ?? '', // a refusal, or a call of a tool that nobody offered
    finishReason: choice?.finish_reason === 'length' ? 'length' : 'stop',
    ...(promptTokens === undefined ? {} : { promptTokens }),
    ...(responseTokens === undefined ? {} : { responseTokens }),
  };
}

/** The client says "Connection error." and gives the reason as the cause of the cause. */
function reasonOf(error: unknown): string {
  const inner = error instanceof Error && error.cause instanceof Error ? reasonOf(error.cause) : '';
  const message = messageOf(error);
  return inner === '' || message.includes(inner) ? message : `${message} (${inner})`;
}
