/** The kinds of models that are no decoders. */
import {
  completeDecoder,
  type ModelInput,
  type ModelSpec,
  type OtherModelInput,
  type OtherModelSpec,
} from '../model-spec.js';
import { choiceTableKind } from './choice-table.js';
import type { ModelKind } from './model-kind.js';

export const modelKinds = [choiceTableKind] as const;

type Holder = (typeof modelKinds)[number]['backend'];
type Kind = ModelKind<OtherModelSpec, OtherModelInput, (typeof modelKinds)[number]['schema'], Holder>;

/** The kind of the models of a type; undefined for decoders and adapters. */
export const kindOfType = (type: unknown): Kind | undefined =>
  modelKinds.find(({ schema }) => schema.shape.type.value === type);

/** Whether a model is neither a decoder nor an adapter on one. */
export const isOtherModel = (model: ModelSpec): model is OtherModelSpec => kindOfType(model.type) !== undefined;

/** The kind of a model that is no decoder. The schema admits no other types. */
export const modelKindOf = ({ type }: OtherModelSpec): Kind => kindOfType(type) as Kind;

/** Fills in the defaults of a model. */
export function completeModel(input: ModelInput): ModelSpec {
  const kind = kindOfType(input.type);
  return kind === undefined ? completeDecoder(input as DecoderInput) : kind.complete(input as OtherModelInput);
}

type DecoderInput = Exclude<ModelInput, OtherModelInput>;
