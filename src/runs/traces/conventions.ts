/**
 * The attributes of spans, by the conventions that name them: OpenTelemetry's GenAI conventions, AI SDK 5 and 6,
 * OpenLLMetry, OpenInference, Langfuse, Braintrust, MLflow, Pydantic AI and Google's ADK. A span may follow several.
 */
import { isObject, NumberText } from '@drmas/engine/errors';
import { graphAgent } from './runs-of-tools.js';
import {
  isEmpty,
  type JsonFields,
  jsonOf,
  listOf,
  partsOf,
  scoreOf,
  type TraceScore,
  type TraceSpan,
  wordOf,
} from './span-fields.js';

type Attributed = Pick<TraceSpan, 'attributes' | 'name'>;

/** The facts of a call in a span, and their attributes; of several attributes the first that is not empty counts. */
const NAMES = {
  input: [
    'ai.prompt.messages',
    'gen_ai.input.messages',
    'gen_ai.prompt',
    'llm.input_messages',
    'langfuse.observation.input',
    'braintrust.input_json',
    'mlflow.spanInputs',
    'gcp.vertex.agent.llm_request',
    'input.value',
  ],
  output: [
    'gen_ai.output.messages',
    'gen_ai.completion',
    'llm.output_messages',
    'langfuse.observation.output',
    'braintrust.output_json',
    'mlflow.spanOutputs',
    'gcp.vertex.agent.llm_response',
    'output.value',
  ],
  /** The whole reply, from which instrumentations take the messages of `output`, and not always why they ended. */
  reply: ['output.value'],
  finish: ['gen_ai.response.finish_reasons', 'ai.response.finishReason', 'llm.finish_reason'],
  tools: ['gen_ai.tool.definitions', 'ai.prompt.tools', 'llm.request.functions', 'llm.tools', 'mlflow.chat.tools'],
  /** The settings of the request, which may have the tools. */
  request: ['llm.invocation_parameters', 'model_request_parameters'],
  instructions: ['gen_ai.system_instructions'],
  model: [
    'gen_ai.request.model',
    'ai.model.id',
    'llm.model_name',
    'langfuse.observation.model.name',
    'gen_ai.response.model',
    'mlflow.llm.model',
  ],
  read: ['gen_ai.usage.input_tokens', 'gen_ai.usage.prompt_tokens', 'llm.token_count.prompt', 'ai.usage.inputTokens'],
  written: [
    'gen_ai.usage.output_tokens',
    'gen_ai.usage.completion_tokens',
    'llm.token_count.completion',
    'ai.usage.outputTokens',
  ],
  agent: ['gen_ai.agent.name', 'ai.telemetry.functionId', 'agent.name', 'agent_name', 'gen_ai.agent.id'],
  /** The input of a program, if the span is no call. */
  task: [
    'input.value',
    'gen_ai.input.messages',
    'langfuse.observation.input',
    'braintrust.input_json',
    'mlflow.spanInputs',
  ],
} as const satisfies Record<string, readonly string[]>;

/** The value of the first of these attributes that is not empty. */
export function told(attributes: JsonFields, what: keyof typeof NAMES): unknown {
  for (const name of NAMES[what]) {
    const value = valueAt(attributes, name);
    if (!isEmpty(value)) return value;
  }
  return undefined;
}

/** Names that may go on, as in `gen_ai.prompt.0.role`, or be nested. */
const PARTED =
  /^(?:llm|openinference|input|output|agent)\.|^gen_ai\.(?:prompt|completion)$|^(?:trace\.)?(annotation|evaluation)s$/;
/** Names whose values are data of programs, in which a dot is a part of a key. */
const OF_DATA = /(?:^|\.)(?:value|json_schema|arguments|args|content|parameters|invocation_parameters)$/;

/** An attribute, or what the attributes make up whose names go on. */
function valueAt(attributes: JsonFields, name: string): unknown {
  if (!isEmpty(attributes[name])) return PARTED.test(name) ? undotted(attributes[name], name) : attributes[name];
  if (!PARTED.test(name)) return undefined;
  const fields = Object.entries(attributes).flatMap(([key, value]): [string, unknown][] => {
    if (key.startsWith(`${name}.`)) return [[key.slice(name.length + 1), value]];
    // Some exports nest the parts of a name.
    return name.startsWith(`${key}.`) && isObject(value) ? [['', valueAt(value, name.slice(key.length + 1))]] : [];
  });
  const [nested] = fields.filter(([key]) => key === '');
  if (nested !== undefined) return undotted(nested[1], name);
  return fields.length === 0 ? undefined : withParts(undotted(Object.fromEntries(fields)));
}

/** Messages of OpenLLMetry: a content of several parts is their JSON. */
function withParts(messages: unknown): unknown {
  return Array.isArray(messages)
    ? messages.map((message: unknown) =>
        isObject(message) && 'content' in message
          ? { ...message, content: partsOf(message.content, message.role) }
          : message,
      )
    : messages;
}

/** The most parts of a name that become objects in objects. Messages have fewer. */
const MOST_PARTS = 50;

/** A value whose keys with dots have become objects, and lists if the parts are numbers. */
function undotted(value: unknown, name = '', depth = 0): unknown {
  if (OF_DATA.test(name) || depth > MOST_PARTS) return value;
  if (Array.isArray(value)) return value.map((each) => undotted(each, '', depth + 1));
  if (!isObject(value) || value instanceof NumberText) return value;
  const parts = new Map<string, [string, unknown][]>();
  for (const [key, inner] of Object.entries(value)) {
    const [head = '', ...rest] = key.split('.');
    const part: [string, unknown] = [rest.join('.'), inner];
    const others = parts.get(head);
    if (others === undefined) parts.set(head, [part]);
    else others.push(part);
  }
  const entries = [...parts].map(([head, inner]) => {
    const whole = inner.find(([rest]) => rest === '');
    const [given, named] = whole === undefined ? [Object.fromEntries(inner), ''] : [whole[1], head];
    return [head, undotted(given, named, depth + 1)] as const;
  });
  if (entries.length === 0 || entries.some(([head]) => !/^\d+$/.test(head))) return Object.fromEntries(entries);
  return entries.sort(([a], [b]) => Number(a) - Number(b)).map(([, inner]) => inner);
}

/** The scores of a span and of its trace by OpenInference. Phoenix writes them into the spans that its page saves. */
export const feedbackIn = (attributes: JsonFields): TraceScore[] =>
  ['annotation', 'evaluation'].flatMap((kind) =>
    [`${kind}s`, `trace.${kind}s`].flatMap((name) =>
      listOf(valueAt(attributes, name)).flatMap((each) => {
        const given = isObject(each) ? each[kind] : undefined;
        return isObject(given) ? scoreOf(given.name, given.score ?? given.label) : [];
      }),
    ),
  );

const CALLS = ['chat', 'generate_content', 'text_completion'];

/** Operations around calls of models, or beside them. An unknown one with messages is a call. */
const NO_CALLS = [
  'invoke_agent',
  'create_agent',
  'agent_step',
  'invoke_workflow',
  'execute_tool',
  'embeddings',
  'retrieval',
  'rerank',
];

/** Whether AI SDK 5 or 6 wrote the span of a call. */
export const isOfSdk = (attributes: JsonFields) => /\.do(Generate|Stream)$/.test(wordOf(attributes['ai.operationId']));

export function isCall({ attributes }: Attributed): boolean {
  const operation = attributes['gen_ai.operation.name'];
  if (isOfSdk(attributes) || CALLS.includes(wordOf(operation))) return true;
  if (CALLS.concat('completion').includes(wordOf(attributes['llm.request.type']))) return true;
  const kind = kindOf(attributes);
  if (kind !== undefined) return ['LLM', 'CHAT_MODEL', 'GENERATION'].includes(kind);
  if (attributes['ai.operationId'] !== undefined || NO_CALLS.includes(wordOf(operation))) return false;
  return [NAMES.input, NAMES.output].every((names) =>
    names.some((name) => /^(?:gen_ai|llm|gcp)\./.test(name) && !isBlank(valueAt(attributes, name))),
  );
}

/** ADK writes an empty request into the spans of tools. */
const isBlank = (value: unknown) => isEmpty(value) || value === '{}';

/** The kind of a span by OpenInference, Langfuse, OpenLLMetry, Braintrust or MLflow, in capitals. */
function kindOf(attributes: JsonFields): string | undefined {
  const braintrust = jsonOf(attributes['braintrust.span_attributes']);
  const kind = [
    valueAt(attributes, 'openinference.span.kind'),
    attributes['langfuse.observation.type'],
    attributes['traceloop.span.kind'],
    isObject(braintrust) ? braintrust.type : undefined,
    jsonOf(attributes['mlflow.spanType']),
  ].find((each) => typeof each === 'string');
  return typeof kind === 'string' ? kind.toUpperCase() : undefined;
}

/** Whether the span is the execution of a tool. */
export const isTool = ({ attributes }: Attributed): boolean =>
  attributes['gen_ai.operation.name'] === 'execute_tool' ||
  attributes['ai.operationId'] === 'ai.toolCall' ||
  kindOf(attributes) === 'TOOL';

/** Whether the span is the work of an evaluation: a scorer of Braintrust, or an evaluator of Langfuse and others. */
export const isScorer = ({ attributes }: Attributed): boolean =>
  ['SCORE', 'EVALUATOR'].includes(kindOf(attributes) ?? '');

export function agentName({ attributes, name }: Attributed): string | undefined {
  const named = told(attributes, 'agent');
  if (typeof named === 'string') return named;
  if (kindOf(attributes) !== 'AGENT') return undefined;
  const entity = attributes['traceloop.entity.name'];
  return typeof entity === 'string' ? entity : name;
}

/** Where exporters write the metadata of LangChain: LangSmith's, Langfuse's, OpenLLMetry's. OpenInference has JSON. */
const METADATA = /^(?:langsmith\.metadata|langfuse\.observation\.metadata|traceloop\.association\.properties)\.(.+)/;

/** The agent of a call of LangGraph, by the metadata of its span. */
export function agentOfGraph({ attributes }: Attributed): string | undefined {
  const whole = jsonOf(attributes.metadata);
  const fields = Object.entries(attributes).flatMap(([name, value]) => {
    const [, field] = METADATA.exec(name) ?? [];
    return field === undefined ? [] : [[field, value] as const];
  });
  return graphAgent({ ...(isObject(whole) ? whole : {}), ...Object.fromEntries(fields) });
}

/** The numbers of tokens of a call. Langfuse and MLflow write them as JSON. */
export function tokensOf(attributes: JsonFields): { readonly read: number; readonly written: number } {
  const details = ['langfuse.observation.usage_details', 'mlflow.chat.tokenUsage'].map((name) =>
    jsonOf(attributes[name]),
  );
  const { input, output, input_tokens = input, output_tokens = output } = details.find(isObject) ?? {};
  const count = (value: unknown) => {
    const number = Number(wordOf(value));
    return Number.isFinite(number) ? number : 0;
  };
  return {
    read: count(told(attributes, 'read') ?? input_tokens),
    written: count(told(attributes, 'written') ?? output_tokens),
  };
}
