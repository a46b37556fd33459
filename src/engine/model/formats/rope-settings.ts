import { z } from 'zod';
import { CheckpointError } from '../../../base/errors.js';
import type { RopeScaling } from '../../contract/architecture.js';
import { parseWith } from './validated-json.js';

const positive = z.number().positive();
const ropeSettings = z.looseObject({
  rope_theta: positive.optional(),
  rope_type: z.string().optional(),
  type: z.string().optional(),
});
const linear = z.looseObject({ factor: positive });
const llama3 = z.looseObject({
  factor: positive,
  low_freq_factor: positive,
  high_freq_factor: positive,
  original_max_position_embeddings: z.int().positive(),
});

/**
 * Reads the rotary embedding from either generation of config.json: `rope_theta` and `rope_scaling`, or both in
 * `rope_parameters`.
 * @param defaultBase The family's base if the file names none
 * @throws CheckpointError when it is malformed or of an unsupported kind
 */
export function readRope(
  raw: Readonly<Record<string, unknown>>,
  file: string,
  defaultBase: number,
): { readonly base: number; readonly scaling?: RopeScaling } {
  const key = raw.rope_parameters ? 'rope_parameters' : 'rope_scaling';
  const settings = parseWith(ropeSettings, raw[key] ?? {}, file, key);
  const base = settings.rope_theta ?? parseWith(positive.nullish(), raw.rope_theta, file, 'rope_theta') ?? defaultBase;
  const type = settings.rope_type ?? settings.type ?? 'default';
  switch (type) {
    case 'default':
      return { base };
    case 'linear':
      return { base, scaling: { type, factor: parseWith(linear, settings, file, key).factor } };
    case 'llama3': {
      const scaling = parseWith(llama3, settings, file, key);
      return {
        base,
        scaling: {
          type,
          factor: scaling.factor,
          lowFrequencyFactor: scaling.low_freq_factor,
          highFrequencyFactor: scaling.high_freq_factor,
          originalContext: scaling.original_max_position_embeddings,
        },
      };
    }
    default:
      throw new CheckpointError(
        `${file}: ${key} of the kind "${type}" is not supported, expected default, linear or llama3`,
      );
  }
}

/** The value of `rope_scaling` in a config.json. */
export function writeRope(scaling: RopeScaling | undefined): Record<string, unknown> | null {
  if (scaling === undefined) return null;
  const { type, factor } = scaling;
  if (type === 'linear') return { rope_type: type, factor };
  return {
    rope_type: type,
    factor,
    low_freq_factor: scaling.lowFrequencyFactor,
    high_freq_factor: scaling.highFrequencyFactor,
    original_max_position_embeddings: scaling.originalContext,
  };
}
