/** Who answers in place of a team's agents while demonstrations are recorded. */

import type { CompleteText, TextReply } from '@drmas/engine/endpoints';
import { isObject, messageOf, parseAt, RunError, shown } from '@drmas/engine/errors';
import type { Message, Tool, ToolCall, ToolChoice } from '@drmas/engine/nouns';
import { type FrozenSpec, frozenSchema } from '../../../method/recipe.js';

/** A call of an agent, for a function or a person who answers it. */
export interface AgentQuestion {
  readonly agent: string;
  /** The data of the task that the team plays. */
  readonly task: unknown;
  /** The conversation as the agent reads it, with the line that demands a schema. */
  readonly messages: readonly Message[];
  readonly tools?: readonly Tool[];
  readonly toolChoice?: ToolChoice;
}

/** An answer: a text, tool calls, or both. Undefined leaves the task out. */
export type AgentAnswer =
  | string
  | undefined
  | {
      readonly text?: string;
      readonly toolCalls?: readonly { readonly name: string; readonly arguments: string | object }[];
    };

export type Answerer = (question: AgentQuestion, signal: AbortSignal) => AgentAnswer | Promise<AgentAnswer>;

/** Raised by an answerer that gives no more answers. The episodes before count. */
export class NoMoreAnswers extends Error {}

/** Raised in a task that the answerer leaves out. */
export class TaskLeftOut extends Error {}

/**
 * - `model`: an endpoint, a function or a model that `frozen` takes. It answers several tasks at the same time.
 * - `answers`: a function or a person, asked one question after another.
 */
export type Speaker =
  | { readonly type: 'model'; readonly name: string; readonly spec: FrozenSpec; readonly complete?: CompleteText }
  | {
      readonly type: 'answers';
      readonly name: string;
      readonly answer: Answerer;
      /** Whether an answer may take hours. */
      readonly isPerson: boolean;
    };

/**
 * The speaker that a module's default export is: a function, or what `frozen` returns.
 * @param file The module, for errors
 * @throws RunError, RecipeError
 */
export function speakerOfModule(file: string, value: unknown): Speaker {
  if (typeof value === 'function') return { type: 'answers', name: file, answer: value as Answerer, isPerson: false };
  if (!isObject(value) || typeof value.type !== 'string')
    throw new RunError(
      `${file}: expected a function ({ agent, task, messages, tools }) => answer, or frozen(...), as the default export; got ${shown(value)}`,
    );
  const { complete, ...settings } = value;
  const spec = parseAt(frozenSchema, value.type === 'text' ? settings : value, [file]);
  if (spec.type !== 'text') return { type: 'model', name: file, spec };
  if (typeof complete !== 'function') throw new RunError(`${file}: expected frozen({ complete }) with a function`);
  return { type: 'model', name: file, spec, complete: complete as CompleteText };
}

/**
 * An answer in the form of a model's reply; undefined if the task is to be left out.
 * @param place The speaker, for errors
 * @throws RunError for a value of another form
 */
export function replyOf(answer: unknown, place: string): TextReply | undefined {
  if (answer === undefined || answer === null) return undefined;
  if (typeof answer === 'string') return { text: answer };
  const wrong = () =>
    new RunError(
      `${place}: expected a text, { text, toolCalls: [{ name, arguments }] }, or nothing to leave the task out; got ${shown(answer)}`,
    );
  if (!isObject(answer)) throw wrong();
  const { text = '', toolCalls = [] } = answer;
  if (typeof text !== 'string' || !Array.isArray(toolCalls)) throw wrong();
  if (text === '' && toolCalls.length === 0) throw wrong();
  const calls = toolCalls.map((call: unknown, i): ToolCall => {
    if (!isObject(call) || typeof call.name !== 'string') throw wrong();
    const { name, arguments: given = {} } = call;
    if (typeof given !== 'string' && !isObject(given)) throw wrong();
    return { id: `call_${i}`, name, arguments: typeof given === 'string' ? given : JSON.stringify(given) };
  });
  return { text, ...(calls.length === 0 ? {} : { toolCalls: calls }) };
}

export const thrownBy = (place: string, error: unknown) => new Error(`${place} threw: ${messageOf(error)}`);
