import type { z } from 'zod';
import type { Tokenizer } from '../../nouns.js';
import type { OtherModelInput, OtherModelSpec } from '../model-spec.js';

/** All that the program asks about models that are no decoders: no text, and no learning from demonstrations. */
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
