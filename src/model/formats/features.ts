import { CheckpointError } from '../../core/errors.js';
import type { ModelDescription } from './config.js';
import type { RopeScaling } from './rope.js';

/** What an engine can compute beyond a plain Llama with tied embeddings. */
export interface EngineFeatures {
  readonly untiedOutput: boolean;
  readonly attentionBias: boolean;
  readonly queryKeyNorm: boolean;
  readonly ropeScaling: readonly RopeScaling['type'][];
}

/**
 * Refuses a model that an engine with these features would compute wrongly.
 * @throws CheckpointError naming everything that is missing.
 */
export function requireFeatures(model: ModelDescription, features: EngineFeatures, file: string): void {
  const missing: string[] = [];
  if (!model.tied && !features.untiedOutput) missing.push('an output layer of its own (tie_word_embeddings: false)');
  if (model.attentionBias !== 'none' && !features.attentionBias) missing.push('attention biases');
  if (model.queryKeyNorm && !features.queryKeyNorm) missing.push('normalised queries and keys');
  const scaling = model.ropeScaling?.type;
  if (scaling !== undefined && !features.ropeScaling.includes(scaling)) missing.push(`"${scaling}" RoPE scaling`);
  if (missing.length > 0) {
    throw new CheckpointError(
      `${file}: the engine cannot compute this ${model.architecture} model yet: ${missing.join(', ')}`,
    );
  }
}
