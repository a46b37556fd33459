/** How scorers of each package are called, which of them call a model, and what their verdicts say. */

import { ArgumentError, isObject } from '@drmas/engine/errors';
import type { Turn } from '@drmas/engine/nouns';

/** The input of a scorer, in the words that evaluation packages share. */
export interface ScorerInput {
  readonly input: unknown;
  readonly output: unknown;
  /** The reference answer, if there is one. */
  readonly expected?: unknown;
  readonly [name: string]: unknown;
}

/** A verdict: a number, or an object with one. */
export type Verdict =
  | number
  | boolean
  | { readonly score?: number | null | undefined; readonly name?: string; readonly notScorable?: unknown }
  | null;

/** A function as autoevals and evalite have them, a scorer of Mastra (`run`), or a judge of vitest-evals (`assess`). */
export type Scorer =
  // biome-ignore lint/suspicious/noExplicitAny: each package has its own parameters, of which ours are a part
  | ((args: any) => Verdict | Promise<Verdict>)
  // biome-ignore lint/suspicious/noExplicitAny: as above
  | { readonly name?: string; run(args: any): Promise<Verdict> }
  // biome-ignore lint/suspicious/noExplicitAny: as above
  | { readonly name?: string; assess(args: any): Verdict | Promise<Verdict> };

export interface ScorerCalls {
  /** All that the scorer reads of an episode. Equal readings may share a verdict. */
  read(given: ScorerInput, turns: readonly Turn[]): object;
  ask(reading: object, signal: AbortSignal): unknown;
}

/** The calls of a scorer of any known kind; undefined for all else. */
export function callsOf(scorer: Scorer): ScorerCalls | undefined {
  if (typeof scorer === 'function') return { read: (given) => given, ask: async (reading) => scorer(reading) };
  if (!isObject(scorer)) return undefined;
  if ('run' in scorer) return { read: mastraReading(scorer), ask: (reading) => scorer.run(reading) };
  if (!('assess' in scorer)) return undefined;
  const model = modelOf(scorer);
  return {
    read: judgeReading,
    ask: async (reading, signal) => scorer.assess({ ...reading, signal, ...model?.(signal) }),
  };
}

/** The scorers of autoevals 0.3 that call a model. */
const MODEL_GRADED = new Set(
  'Battle ClosedQA Factuality Humor Possible Security Sql Summary Translation LLMClassifier AnswerCorrectness AnswerRelevancy AnswerSimilarity ContextEntityRecall ContextPrecision ContextRecall ContextRelevancy EmbeddingSimilarity Faithfulness Moderation'.split(
    ' ',
  ),
);

/**
 * Whether a scorer is known to call a model: one of autoevals by its name, one of Mastra by its judge or by a step with
 * a prompt, one of vitest-evals by its judge harness.
 */
export function callsModel(scorer: Scorer): boolean {
  if (typeof scorer === 'function') return MODEL_GRADED.has(scorer.name);
  const { judge, config, judgeHarness, getSteps } = scorer as Readonly<Record<string, unknown>>;
  if (judge !== undefined || judgeHarness !== undefined) return true;
  if (isObject(config) && config.judge !== undefined) return true;
  const steps: unknown = typeof getSteps === 'function' ? getSteps.call(scorer) : [];
  return Array.isArray(steps) && steps.some((step) => isObject(step) && step.type === 'prompt');
}

/** @throws ArgumentError for a verdict without a number, with the scorer's reason */
export function scoreIn(verdict: unknown, name: string): number {
  const score = isObject(verdict) ? verdict.score : verdict;
  const number = typeof score === 'boolean' ? Number(score) : score;
  if (typeof number === 'number' && Number.isFinite(number)) return number;
  // A verdict of Mastra repeats the whole input.
  const { notScorable } = isObject(verdict) ? verdict : {};
  const shown = notScorable === undefined ? verdict : { notScorable };
  throw new ArgumentError(`the scorer '${name}' gave ${JSON.stringify(shown)}; expected a number, or { score }`);
}

interface Called {
  /** The number of the call in the episode. The ids that models write differ between equal episodes. */
  readonly id: string;
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  readonly result: string | undefined;
}

/** The tool calls of the team, in the order of the turns. */
function toolCallsOf(turns: readonly Turn[]): Called[] {
  const played = turns.filter(({ judging }) => judging !== true);
  const results = new Map(played.flatMap(({ messages }) => messages.map((m) => [m.toolCallId, m.content] as const)));
  const calls = played.flatMap(({ toolCalls = [] }) => toolCalls);
  return calls.map(({ id, name, arguments: text }, i) => {
    return { id: `call_${i + 1}`, name, arguments: recordIn(text), result: results.get(id) };
  });
}

function recordIn(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : { value };
  } catch {
    return { text };
  }
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''));

/**
 * The input of a scorer of Mastra. `groundTruth` is its word for the reference answer. A scorer of the type `agent`
 * reads messages, one of the type `trajectory` the tool calls.
 */
function mastraReading(scorer: object): ScorerCalls['read'] {
  const type: unknown = 'type' in scorer ? scorer.type : undefined;
  const message = (role: 'user' | 'assistant', parts: readonly object[]) => ({
    id: role,
    role,
    createdAt: new Date(0),
    content: { format: 2, parts },
  });
  const text = (value: unknown) => ({ type: 'text', text: textOf(value) });
  return ({ expected, ...given }, turns) => {
    const run = { ...given, expected, groundTruth: expected };
    if (type !== 'agent' && type !== 'trajectory') return run;
    const calls = toolCallsOf(turns);
    const steps = calls.map(({ name, arguments: toolArgs }) => ({ stepType: 'tool_call', name, toolArgs }));
    const invocations = calls.map(({ id, name, arguments: args, result }) => ({
      type: 'tool-invocation',
      toolInvocation: {
        toolCallId: id,
        toolName: name,
        args,
        ...(result === undefined ? { state: 'call' } : { state: 'result', result }),
      },
    }));
    const inputMessages = [message('user', [text(given.input)])];
    const input = { inputMessages, rememberedMessages: [], systemMessages: [], taggedSystemMessages: {} };
    const messages = [message('assistant', [...invocations, text(given.output)])];
    const output = type === 'agent' ? messages : { steps, rawOutput: messages };
    const { input: ours, output: theirs } = given; // `args` may give them as Mastra has them
    return {
      ...run,
      input: isObject(ours) && 'inputMessages' in ours ? ours : input,
      output: Array.isArray(theirs) || (isObject(theirs) && 'steps' in theirs) ? theirs : output,
    };
  };
}

/** The context of a judge of vitest-evals: the session as its harnesses write it. */
function judgeReading(given: ScorerInput, turns: readonly Turn[]): object {
  const calls = toolCallsOf(turns);
  const toolCalls = calls.map(({ result, ...call }) =>
    result === undefined ? { ...call, status: 'pending' } : { ...call, status: 'ok', result },
  );
  const events = [
    { type: 'message', role: 'user', content: given.input },
    ...calls.flatMap(({ result, ...call }) => [
      { type: 'tool_call', ...call },
      ...(result === undefined ? [] : [{ type: 'tool_result', toolCallId: call.id, name: call.name, content: result }]),
    ]),
    { type: 'message', role: 'assistant', content: given.output },
  ];
  const session = { events };
  return { toolCalls, session, run: { session, output: given.output, usage: {}, errors: [] }, ...given };
}

/** The function by which a judge of vitest-evals asks its model; undefined if it has no `judgeHarness`. */
function modelOf(judge: object) {
  const judgeHarness: unknown = 'judgeHarness' in judge ? judge.judgeHarness : undefined;
  if (!isObject(judgeHarness) || typeof judgeHarness.run !== 'function') return undefined;
  const run: (...args: readonly unknown[]) => unknown = judgeHarness.run.bind(judgeHarness);
  return (signal: AbortSignal) => ({
    runJudge: async (prompt: unknown) => {
      const artifacts: Record<string, unknown> = {};
      const setArtifact = (name: string, value: unknown) => {
        artifacts[name] = value;
      };
      const result = await run(prompt, { signal, artifacts, setArtifact });
      return isObject(result) ? result.output : undefined;
    },
  });
}
