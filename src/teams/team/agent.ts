import type { Sampling } from '@drmas/engine/contract';
import { isObject, madeWith } from '@drmas/engine/errors';
import { type ToolFormatName, toolFormatNames } from '@drmas/engine/tool-calls';
import { z } from 'zod';
import { jsonParser, type Parser, type UsingParser } from './parsers.js';
import { isStandardSchema, type StandardSchema, schemaProblem } from './standard-schema.js';

/** A role in a team: its system prompt, its parser and its sampling settings. A recipe assigns a model to it. */
export interface Agent<Value = unknown> {
  /** The system prompt at the beginning of every conversation of this agent. */
  readonly system: string | undefined;
  /** The parser of the agent's texts; `undefined`, `null`, `NaN` and an invalid `Date` mean that a text is invalid. */
  readonly parse: UsingParser<Value>;
  /** The agent's sampling settings; the recipe completes them and may override them. */
  readonly sampling: Partial<Sampling>;
  /** The penalty for an invalid output (>= 0), unless the recipe sets another. */
  readonly invalidPenalty: number;
  /** The format in which the agent's models write tool calls; absent if the agent calls no tools. */
  readonly tools?: ToolFormatName;
}

/** The settings of `agent`. */
export interface AgentSpec<Value> {
  /** The system prompt at the beginning of every conversation of this agent. Default: none. */
  readonly system?: string;
  /**
   * How the agent's text becomes a value: a parser, or a schema of zod or of another library of Standard Schema. A
   * parser that returns `{ value, penalised: true }` gives the team a value and makes the turn invalid, so that its
   * penalty counts. With `penalised: false` any value, `null` too, is valid. With a schema, the text (or its only
   * fenced block) must be JSON that the schema accepts. Default: the whole text, which is never invalid.
   */
  readonly parse?: UsingParser<Value> | StandardSchema<Value>;
  /**
   * Sampling settings for the agent's responses. A recipe can override them. Default: temperature 1, topP 1, topK 0,
   * maxTokens 256.
   */
  readonly sampling?: Partial<Sampling>;
  /** The penalty (>= 0) for an invalid output. A recipe can override it. Default 0. */
  readonly invalidPenalty?: number;
  /** The format in which the agent's models write tool calls. Policies need it to call tools. */
  readonly tools?: ToolFormatName | undefined;
}

const specSchema = z.strictObject({
  system: z.string().optional(),
  parse: z
    .unknown()
    .superRefine((value, context) => {
      if (value === undefined || typeof value === 'function') return;
      const message = schemaProblem(value)?.replace(
        /^expected a schema of zod,/,
        'expected a function, a schema of zod,',
      );
      if (message !== undefined) context.addIssue({ code: 'custom', message });
    })
    .optional(),
  sampling: z
    .strictObject({
      temperature: z.number().min(0),
      topP: z.number().gt(0).max(1),
      topK: z.int().min(0),
      maxTokens: z.int().min(1),
    })
    .partial()
    .optional(),
  invalidPenalty: z.number().min(0).optional(),
  tools: z.enum(toolFormatNames).optional(),
});

const wholeText: Parser<string> = (text) => text;

/** Whether an agent has a parser of the team, which decides whether its texts are valid. */
export const judgesTexts = ({ parse }: Pick<Agent, 'parse'>): boolean => parse !== wholeText;

/** Functions of JavaScript that read a blank text as 0, a number that the agent did not write. */
const READS_BLANK: ReadonlySet<unknown> = new Set([Number, BigInt]);

function parserOf(parse: AgentSpec<unknown>['parse'] = wholeText): UsingParser<unknown> {
  if (READS_BLANK.has(parse)) return (text) => (text.trim() === '' ? undefined : (parse as Parser<unknown>)(text));
  if (!isStandardSchema(parse)) return parse;
  const read = jsonParser(parse);
  return (text) => {
    const value = read(text);
    // The schema may allow null, and an object with a field of this name.
    return value === null || (isObject(value) && 'penalised' in value) ? { value, penalised: false } : value;
  };
}

/**
 * Declares an agent of a team. @throws ArgumentError naming the field that is wrong.
 *
 * @example
 * ```ts
 * import { agent, boxed } from 'drmas';
 * import { z } from 'zod';
 *
 * const solver = agent({ system: 'Solve step by step.', parse: boxed, invalidPenalty: 0.1 });
 * const judge = agent({ system: 'Reply in JSON.', parse: z.object({ score: z.number().min(0).max(10) }) });
 * ```
 */
export function agent(spec?: AgentSpec<string> & { readonly parse?: never; readonly tools?: undefined }): Agent<string>;
export function agent(spec: AgentSpec<string> & { readonly parse?: never }): Agent<string | undefined>;
// Schemas of ArkType can be called, so they would pass for parsers that return errors.
export function agent<Value>(
  spec: Omit<AgentSpec<Value>, 'parse'> & { readonly parse: StandardSchema<Value>; readonly tools?: undefined },
): Agent<Value>;
export function agent<Value>(
  spec: Omit<AgentSpec<Value>, 'parse'> & { readonly parse: StandardSchema<Value> },
): Agent<Value | undefined>;
export function agent<Value>(spec: AgentSpec<Value> & { readonly tools?: undefined }): Agent<Value>;
export function agent<Value>(spec: AgentSpec<Value>): Agent<Value | undefined>;
export function agent(spec: AgentSpec<unknown> = {}): Agent {
  madeWith(specSchema, spec, 'agent');
  return {
    system: spec.system,
    parse: parserOf(spec.parse),
    sampling: spec.sampling ?? {},
    invalidPenalty: spec.invalidPenalty ?? 0,
    ...(spec.tools === undefined ? {} : { tools: spec.tools }),
  };
}
