import { describe, expect, it } from 'vitest';
import { backendContract } from '../../../test/contracts/backend.js';
import { writeBaseModel } from '../../../test/support/tinker-fake/base-model.js';
import { temporaryRoot } from '../../../test/support/tiny-run.js';
import { CheckpointError } from '../../core/errors.js';
import type { Files } from '../../core/files.js';
import { nodeFiles } from '../../runs/node-files.js';
import { EmbeddedBackend } from './backend.js';

const root = temporaryRoot();
backendContract('the embedded engine', () => EmbeddedBackend.start({ threads: 2, files: nodeFiles }), root);

describe('a checkpoint that cannot be read to its end', () => {
  const config = {
    ...{ vocabSize: 261, width: 8, layers: 1, heads: 2, kvHeads: 1, headDim: 4, feedForward: 12 },
    ...{ context: 64, ropeBase: 10_000, normEpsilon: 1e-6 },
  };
  const tokens = Int32Array.of(1, 2, 3);

  it('leaves no policy behind, and no base; the next attempt reads it whole', async () => {
    const directory = await writeBaseModel(root, { name: 'unreadable', config });
    let left = Number.POSITIVE_INFINITY;
    const readBytes: Files['readBytes'] = async (...range) => {
      if (left-- <= 0) throw new Error('EIO: the disk is gone');
      return nodeFiles.readBytes(...range);
    };
    const backend = await EmbeddedBackend.start({ threads: 1, files: { ...nodeFiles, readBytes } });
    const whole = { type: 'directory', directory } as const;
    const settings = { rank: 1, alpha: 1, targets: ['q'] as const };
    const adapted = { type: 'adapter', base: whole, adapter: settings, seed: 1 } as const;
    for (const spec of [whole, adapted]) {
      left = 6;
      const failed = backend.createPolicy(spec.type, spec);
      await expect(failed).rejects.toThrow(CheckpointError);
      await expect(failed).rejects.toThrow(/unreadable\/model\.safetensors: cannot be read: EIO/);
      left = Number.POSITIVE_INFINITY;
      await backend.createPolicy(spec.type, spec);
    }
    // An adapter changes nothing at first.
    expect(await backend.logits('adapter', tokens)).toEqual(await backend.logits('directory', tokens));
    const other = await EmbeddedBackend.start({ threads: 1, files: nodeFiles });
    await other.createPolicy('other', whole);
    expect(await other.logits('other', tokens)).toEqual(await backend.logits('directory', tokens));
    await Promise.all([backend.dispose(), other.dispose()]);
  });
});
