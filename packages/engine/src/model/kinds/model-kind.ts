import type { z } from 'zod';
import type { Tokenizer } from '../../nouns.js';
import type { OtherModelInput, OtherModelSpec } from '../model-spec.js';

/**
 * A kind of model that is no decoder: all that the program asks about its models. They write no text and learn from no
 * demonstrations.
 */
export interface ModelKind<
  Spec extends OtherModelSpec = OtherModelSpec,
  Input extends OtherModelInput = OtherModelInput,
  Schema extends z.ZodObject = z.ZodObject,
  Holder extends string = string,
> {
  /** One model of the kind, for messages: `a table of choices`. */
  readonly noun: string;
  readonly schema: Schema;
  complete(input: Input): Spec;
  /** The type of the backend that holds all models of the kind. No recipe names it. */
  readonly backend: Holder;
  text(spec: Spec): string;
  /** The facts about a model that is not open. */
  facts(spec: Spec): { readonly tokenizer: Tokenizer; readonly context: number; readonly parameters: number };
}
