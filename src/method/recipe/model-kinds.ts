/** The kinds of models that are no decoders. `lab/index.ts` lists them. */
import {
  completeDecoder,
  type ModelInput,
  type ModelKind,
  type ModelSpec,
  type OtherModelInput,
  type OtherModelSpec,
} from '../../engine/model.js';
import { modelKinds } from '../../lab/index.js';

/** The backends that hold models of these kinds. */
type Holder = (typeof modelKinds)[number]['backend'];
type Kind = ModelKind<OtherModelSpec, OtherModelInput, (typeof modelKinds)[number]['schema'], Holder>;

/** The kind of the models of a type; undefined for decoders and adapters. */
export const kindOfType = (type: unknown): Kind | undefined =>
  modelKinds.find(({ schema }) => schema.shape.type.value === type);

/** Whether a model is neither a decoder nor an adapter on one. */
export const isOtherModel = (model: ModelSpec): model is OtherModelSpec => kindOfType(model.type) !== undefined;

/** The kind of a model that is no decoder. */
export const kindOf = ({ type }: OtherModelSpec): Kind => kindOfType(type) as Kind; // the schema has no other types

/** Fills in the defaults of a model. */
export function completeModel(input: ModelInput): ModelSpec {
  const kind = kindOfType(input.type);
  return kind === undefined ? completeDecoder(input as DecoderInput) : kind.complete(input as OtherModelInput);
}

type DecoderInput = Exclude<ModelInput, OtherModelInput>;
