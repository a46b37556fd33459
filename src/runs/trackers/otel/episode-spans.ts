import type { AnsweredTurn, BegunEpisode, CallTime, EpisodeListener, TrackedRun } from '@drmas/engine/host';
import {
  type Episode,
  jsonText,
  type Message,
  promptTokens,
  responseTokens,
  successOf,
  type Tool,
} from '@drmas/engine/nouns';
import type * as Api from '@opentelemetry/api';
import type { Attributes } from '@opentelemetry/api';

/** The used part of `@opentelemetry/api`, an optional package. */
export type OtelApi = Pick<typeof Api, 'context' | 'trace' | 'isSpanContextValid' | 'SpanKind' | 'SpanStatusCode'>;

/** The attribute that all spans of an episode share. */
const CONVERSATION = 'gen_ai.conversation.id';

interface Options {
  /** The span of the run; each episode links to it. */
  readonly of: Api.SpanContext;
  readonly texts: boolean;
}

/** The episodes of a run. Each is a separate trace. */
export class EpisodeSpans {
  readonly #api: OtelApi;
  readonly #tracer: Api.Tracer;
  readonly #run: TrackedRun;
  readonly #options: Options;
  readonly #open = new Set<EpisodeSpan>();

  constructor(api: OtelApi, tracer: Api.Tracer, run: TrackedRun, options: Options) {
    this.#api = api;
    this.#tracer = tracer;
    this.#run = run;
    this.#options = options;
  }

  episode(begun: BegunEpisode): EpisodeListener {
    const { round, task, sample } = begun;
    const conversation = `${this.#run.name}/${round.phase}-${round.step}/${task.id}/${sample}`;
    const options = { ...this.#options, conversation };
    const span = new EpisodeSpan(this.#api, this.#tracer, this.#begin(begun, conversation), options);
    this.#open.add(span);
    return {
      within: (run) => span.within(run),
      answered: (turn, time) => span.answered(turn, time),
      ended: (episode) => {
        this.#open.delete(span);
        span.ended(episode);
      },
    };
  }

  /** Ends the spans of episodes that an interruption ended. */
  close(): void {
    for (const span of this.#open) span.interrupted();
    this.#open.clear();
  }

  #begin({ round: { phase, step }, task, sample }: BegunEpisode, conversation: string): Api.Span {
    const { name, recipe } = this.#run;
    return this.#tracer.startSpan(`invoke_workflow ${recipe}`, {
      root: true,
      links: [{ context: this.#options.of }],
      attributes: {
        'gen_ai.operation.name': 'invoke_workflow',
        'gen_ai.workflow.name': recipe,
        [CONVERSATION]: conversation,
        'drmas.run': name,
        'drmas.phase': phase,
        'drmas.step': step,
        'drmas.task': task.id,
        'drmas.sample': sample,
        ...(this.#options.texts ? { 'drmas.task.data': jsonText(task.data) ?? '' } : {}),
      },
    });
  }
}

interface EpisodeOptions extends Pick<Options, 'texts'> {
  readonly conversation: string;
}

/** An agent's part of an episode: from its first call to its last answer. */
interface AgentSpan {
  readonly span: Api.Span;
  end: number;
  read: number | undefined;
  written: number | undefined;
}

/** An episode with a child span for each of its agents. The agents' child spans are their turns. */
class EpisodeSpan implements EpisodeListener {
  readonly #api: OtelApi;
  readonly #tracer: Api.Tracer;
  readonly #span: Api.Span;
  readonly #context: Api.Context;
  readonly #options: EpisodeOptions;
  readonly #parts = new Map<string, AgentSpan>();

  constructor(api: OtelApi, tracer: Api.Tracer, span: Api.Span, options: EpisodeOptions) {
    this.#api = api;
    this.#tracer = tracer;
    this.#span = span;
    this.#context = api.trace.setSpan(api.context.active(), span);
    this.#options = options;
  }

  within<T>(run: () => T): T {
    return this.#api.context.with(this.#context, run);
  }

  answered(turn: AnsweredTurn, { start, end }: CallTime): void {
    const { texts, conversation } = this.#options;
    const part = this.#partOf(turn, start);
    part.end = Math.max(part.end, end);
    part.read = plus(part.read, promptTokens(turn));
    part.written = plus(part.written, responseTokens(turn));
    const { CLIENT, INTERNAL } = this.#api.SpanKind;
    this.#tracer
      .startSpan(
        `chat ${turn.policy}`,
        {
          startTime: start,
          kind: turn.endpoint === undefined ? INTERNAL : CLIENT,
          attributes: { ...chatAttributes(turn, texts), [CONVERSATION]: conversation },
        },
        this.#api.trace.setSpan(this.#context, part.span),
      )
      .end(end);
  }

  ended(episode: Episode): void {
    const { score, failure } = episode;
    this.#endParts();
    const parts = Object.entries(score.parts).map(([name, value]) => [`drmas.reward.${name}`, value]);
    const metrics = Object.entries(score.metrics ?? {}).map(([name, value]) => [`drmas.metrics.${name}`, value]);
    if (failure === undefined) {
      const measured = { ...Object.fromEntries(parts), ...Object.fromEntries(metrics) };
      this.#span.setAttributes({ 'drmas.reward': score.team, 'drmas.success': successOf(episode), ...measured });
    } else this.#fail(failure.reason, failure.message);
    this.#span.end();
  }

  interrupted(): void {
    this.#endParts();
    this.#fail('interrupted', 'the run was interrupted');
    this.#span.end();
  }

  #fail(reason: string, message: string): void {
    this.#span.setAttribute('error.type', reason);
    this.#span.setStatus({ code: this.#api.SpanStatusCode.ERROR, message });
  }

  #partOf(turn: AnsweredTurn, start: number): AgentSpan {
    const { agent, policy } = turn;
    const known = this.#parts.get(agent);
    if (known !== undefined) return known;
    const attributes = {
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.provider.name': providerOf(turn),
      'gen_ai.agent.name': agent,
      'gen_ai.request.model': policy,
      [CONVERSATION]: this.#options.conversation,
    };
    const span = this.#tracer.startSpan(`invoke_agent ${agent}`, { startTime: start, attributes }, this.#context);
    const part = { span, end: start, read: 0, written: 0 };
    this.#parts.set(agent, part);
    return part;
  }

  #endParts(): void {
    for (const { span, end, read, written } of this.#parts.values())
      span.setAttributes({ 'gen_ai.usage.input_tokens': read, 'gen_ai.usage.output_tokens': written }).end(end);
  }
}

// Turns and messages by the GenAI conventions of OpenTelemetry (semantic conventions 1.41, in development).

const providerOf = ({ endpoint }: AnsweredTurn) => (endpoint === undefined ? 'drmas' : 'drmas.endpoint');

/** A sum that lacks a number is not known; its attribute is left out. */
const plus = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined || b === undefined ? undefined : a + b;

function chatAttributes(turn: AnsweredTurn, texts: boolean): Attributes {
  return {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': providerOf(turn),
    'gen_ai.request.model': turn.policy,
    'gen_ai.request.temperature': turn.temperature,
    'gen_ai.response.finish_reasons': [turn.finishReason],
    ...(turn.id === undefined ? {} : { 'gen_ai.response.id': turn.id }),
    'gen_ai.usage.input_tokens': promptTokens(turn),
    'gen_ai.usage.output_tokens': responseTokens(turn),
    'gen_ai.agent.name': turn.agent,
    'drmas.policy.version': turn.policyVersion,
    'drmas.turn': turn.turn,
    'drmas.valid': turn.valid,
    'drmas.penalty': turn.penalty,
    ...(texts ? contents(turn) : {}),
  };
}

/** Prompts and responses as JSON, the form of the conventions for attributes that cannot be structured. */
function contents(turn: AnsweredTurn): Attributes {
  const { content = turn.text, reasoning, toolCalls = [], finishReason } = turn;
  const thought = reasoning === undefined ? [] : [{ type: 'reasoning', content: reasoning }];
  const { parts } = messageOf({ role: 'assistant', content, toolCalls });
  const written = [{ role: 'assistant', parts: [...thought, ...parts], finish_reason: finishReason }];
  const instructions = turn.messages.filter(({ role }) => role === 'system').map(({ content: text }) => textPart(text));
  const read = turn.messages.filter(({ role }) => role !== 'system').map(messageOf);
  return {
    ...(instructions.length === 0 ? {} : { 'gen_ai.system_instructions': JSON.stringify(instructions) }),
    'gen_ai.input.messages': JSON.stringify(read),
    'gen_ai.output.messages': JSON.stringify(written),
    ...(turn.tools === undefined ? {} : { 'gen_ai.tool.definitions': JSON.stringify(turn.tools.map(definition)) }),
  };
}

const definition = (tool: Tool) => ({ type: 'function', ...tool });

const textPart = (content: string) => ({ type: 'text', content });

function messageOf({ role, content, toolCalls = [], toolCallId }: Message) {
  if (role === 'tool') return { role, parts: [{ type: 'tool_call_response', id: toolCallId, response: content }] };
  const calls = toolCalls.map((call) => ({
    type: 'tool_call',
    id: call.id,
    name: call.name,
    arguments: call.arguments,
  }));
  return { role, parts: [...(content === '' && calls.length > 0 ? [] : [textPart(content)]), ...calls] };
}
