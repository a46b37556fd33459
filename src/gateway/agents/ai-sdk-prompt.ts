/** Reads a call of AI SDK's interface as a request to a model. */
import { ArgumentError, given, isObject, messageOf } from '@drmas/engine/errors';
import { argumentsText, type Message, type Tool, type ToolCall } from '@drmas/engine/nouns';
import type { ModelCall, ModelWarning, PromptMessage, PromptPart } from '../../teams/index.js';
import type { ModelRequest } from '../dialects/dialect.js';

export interface ConvertedCall {
  readonly request: ModelRequest;
  readonly warnings: ModelWarning[];
}

/** Who sets the sampling: in training the recipe, else each call, which may leave it to the agent. */
export type SamplingSource = 'recipe' | 'call';

const UNUSED = ['presencePenalty', 'frequencyPenalty', 'reasoning'] as const satisfies readonly (keyof ModelCall)[];
const SAMPLING = [
  'temperature',
  'topP',
  'topK',
  'stopSequences',
  'seed',
] as const satisfies readonly (keyof ModelCall)[];

const UNHEEDED = {
  recipe: { settings: [...SAMPLING, ...UNUSED], reason: 'the recipe controls how the agent samples' },
  call: { settings: UNUSED, reason: 'agents sample without it, as they were trained' },
} as const;

/** @throws ArgumentError for parts that a text model cannot read: a file, an image */
export function readCall(model: string, call: ModelCall, sampler: SamplingSource): ConvertedCall {
  const { prompt, tools = [], toolChoice, maxOutputTokens, responseFormat } = call;
  const { settings, reason } = UNHEEDED[sampler];
  const ignored = settings.filter((setting) => call[setting] !== undefined && call[setting] !== 'provider-default');
  const { temperature, topP, topK, seed, stopSequences: stop } = call;
  const usable = tools.filter(({ type }) => type === 'function');
  const read = usable.map(
    ({ name, description, inputSchema, strict }): Tool => ({
      name,
      ...given({ description, strict }),
      parameters: isObject(inputSchema) ? inputSchema : { type: 'object' },
    }),
  );
  const request: ModelRequest = {
    model,
    messages: prompt.flatMap(messagesOf),
    ...(read.length === 0 ? {} : { tools: read }),
    ...(read.length === 0 || toolChoice === undefined ? {} : { toolChoice: choiceOf(toolChoice) }),
    ...given({ maxTokens: maxOutputTokens }),
    ...(responseFormat?.type === 'json' ? { responseSchema: { ...responseFormat.schema } } : {}),
    stream: false,
    streamUsage: false,
    wantsTokenIds: false,
    sampling: given({ temperature, topP, topK, seed, stop }),
    ignored,
  };
  const warnings = [
    ...ignored.map((feature) => warning(feature, reason)),
    ...tools
      .filter(({ type }) => type !== 'function')
      .map(({ name }) => warning(`tool ${name}`, 'only tools that the program runs itself are offered')),
  ];
  return { request, warnings };
}

const warning = (feature: string, details: string): ModelWarning => ({ type: 'unsupported', feature, details });

const choiceOf = (choice: NonNullable<ModelCall['toolChoice']>) =>
  choice.type === 'tool' ? { name: choice.toolName } : choice.type;

function messagesOf(message: PromptMessage): Message[] {
  const { role, content } = message;
  const parts: readonly PromptPart[] =
    typeof content === 'string' ? [{ type: 'text', text: content } as PromptPart] : content;
  if (role === 'tool') return parts.flatMap(toolMessage);
  const text = parts
    .filter(({ type }) => type !== 'reasoning' && type !== 'tool-call')
    .map((part) => textOf(role, part))
    .join('');
  if (role !== 'assistant') return [{ role, content: text }];
  const toolCalls = parts.filter(({ type }) => type === 'tool-call').map(callOf);
  const reasoning = parts
    .map((part) => (part.type === 'reasoning' ? textOf(role, { ...part, type: 'text' }) : ''))
    .join('');
  const turnId = [message, ...parts].map(turnOf).find((id) => id !== undefined);
  return [
    {
      role,
      content: text,
      ...(reasoning === '' ? {} : { reasoning }),
      ...(toolCalls.length === 0 ? {} : { toolCalls }),
      ...given({ turnId }),
    },
  ];
}

function turnOf({ providerOptions }: Pick<PromptPart, 'providerOptions'>): string | undefined {
  const id = providerOptions?.drmas?.turn;
  return typeof id === 'string' ? id : undefined;
}

function textOf(role: string, part: PromptPart & { readonly text?: unknown }): string {
  if (part.type === 'text' && typeof part.text === 'string') return part.text;
  throw new ArgumentError(
    `a ${role} message has a part of type '${part.type}'; expected text; other parts are not read`,
  );
}

function callOf(part: PromptPart): ToolCall {
  const { toolCallId, toolName, input } = part as PromptPart & Record<string, unknown>;
  const text = typeof input === 'string' ? argumentsText(input) : JSON.stringify(input ?? {});
  return { id: String(toolCallId), name: String(toolName), arguments: text };
}

/** A tool's result as a message. Parts that request a person's approval are left out. */
function toolMessage(part: PromptPart): Message[] {
  if (part.type !== 'tool-result') return [];
  const { toolCallId, toolName, output } = part as PromptPart & Record<string, unknown>;
  try {
    return [{ role: 'tool', content: resultText(output), toolCallId: String(toolCallId), name: String(toolName) }];
  } catch (error) {
    if (error instanceof ArgumentError) throw error;
    throw new ArgumentError(`the result of the tool '${String(toolName)}' is no JSON: ${messageOf(error)}`);
  }
}

function resultText(output: unknown): string {
  if (!isObject(output)) return JSON.stringify(output) ?? '';
  const { type, value, reason } = output;
  if (type === 'execution-denied') return typeof reason === 'string' ? reason : 'The call was denied.';
  if (type === 'content' && Array.isArray(value)) return value.map((part) => textOf('tool', part)).join('');
  if (!Object.hasOwn(output, 'value')) return JSON.stringify(output);
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? 'null');
}
