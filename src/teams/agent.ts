import { z } from 'zod';
import type { Sampling } from '../contract/sampling.js';
import { ArgumentError } from '../core/errors.js';
import { issuesText } from '../core/issues.js';
import type { Parser } from './parsers.js';

/** A role in a team: what it is told, how its words are read, how it samples. It is not a model; a recipe assigns one. */
export interface Agent<Value = unknown> {
  /** Put before every conversation of this agent. */
  readonly system: string | undefined;
  /** `undefined` says that the text is invalid. */
  readonly parse: Parser<Value>;
  /** The agent's own sampling; the recipe completes and may override it. */
  readonly sampling: Partial<Sampling>;
  /** What an invalid output costs its turn (>= 0), unless the recipe says otherwise. */
  readonly invalidPenalty: number;
}

export interface AgentSpec<Value> {
  readonly system?: string;
  /** Default: the whole text, which is then never invalid. */
  readonly parse?: Parser<Value>;
  readonly sampling?: Partial<Sampling>;
  /** Default 0. */
  readonly invalidPenalty?: number;
}

const specSchema = z.strictObject({
  system: z.string().optional(),
  parse: z.custom<Parser<unknown>>((value) => typeof value === 'function', 'expected a function').optional(),
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
});

const wholeText: Parser<string> = (text) => text;

/** Declares an agent of a team. @throws ArgumentError naming the field that is wrong. */
export function agent(spec?: AgentSpec<string> & { readonly parse?: never }): Agent<string>;
export function agent<Value>(spec: AgentSpec<Value>): Agent<Value>;
export function agent(spec: AgentSpec<unknown> = {}): Agent {
  const checked = specSchema.safeParse(spec);
  if (!checked.success) throw new ArgumentError(`agent(...): ${issuesText(checked.error.issues)}`);
  return {
    system: spec.system,
    parse: spec.parse ?? wholeText,
    sampling: spec.sampling ?? {},
    invalidPenalty: spec.invalidPenalty ?? 0,
  };
}
