/** A backend on a fake server, with short waits. */

import { type DecoderConfig, PROJECTIONS, type WeightsSpec } from '@drmas/engine/contract';
import { checkpoint, lora } from '@drmas/engine/model';
import { nodeHost } from '@drmas/engine/platform';
import { createTokenizer } from '@drmas/engine/tokens';
import { type TinkerInput, tinker } from '@drmas/tinker';
import { TinkerBackend } from '@drmas/tinker/internal/client/tinker-backend';
import type { TinkerSpec } from '@drmas/tinker/internal/client/tinker-spec';
import type { RecipeInput } from '../../../src/method/recipe/define.js';
import { arithmeticSymbols } from '../../../src/teams/tasks/generated/arithmetic.js';
import { tinyRecipe } from '../tiny-run.js';
import { writeBaseModel } from './base-model.js';
import type { FakeOptions } from './options.js';
import { TinkerFake } from './server.js';

export const adapterOn = (directory: string, seed = 1, rank = 2): WeightsSpec => ({
  type: 'adapter',
  base: { type: 'directory', directory },
  adapter: { rank, alpha: rank, targets: PROJECTIONS },
  seed,
});

/** Profiles are given by name, except in tests of their detection. */
export async function openOnFake(options: FakeOptions, spec: Partial<TinkerSpec> = {}) {
  const fake = await TinkerFake.start(options);
  const warnings: string[] = [];
  const connect = () =>
    TinkerBackend.connect(
      {
        type: 'tinker',
        url: fake.url,
        profile: 'skyrl-jax',
        models: {},
        concurrency: 8,
        saveEvery: 1,
        deadlineSeconds: 2,
        ...spec,
      },
      {
        host: nodeHost({ warn: (_, message) => void warnings.push(message) }),
        models: [adapterOn(options.directory)],
        environment: {},
        timing: { request: 1, backOff: 0.005, retries: 6, heartbeat: 0.2 },
      },
    );
  return { fake, warnings, connect, backend: await connect() };
}

const symbols = createTokenizer({
  type: 'symbols',
  symbols: arithmeticSymbols,
  stop: '<end>',
  endOfUser: '<ask>',
  endOfAssistant: '<end>',
});

/** A base that speaks the symbols of arithmetic tasks. */
export const writeSymbolsModel = (root: string, options: { name?: string; config?: Partial<DecoderConfig> } = {}) =>
  writeBaseModel(root, { tokenizer: symbols, ...options });

/** The tiny team with adapters on the model in `directory`, on the server. */
export function remoteRecipe(
  directory: string,
  backend: Omit<TinkerInput, 'type'>,
  changes: Partial<RecipeInput> = {},
  overrides: readonly string[] = [],
) {
  return tinyRecipe(
    {
      model: lora(checkpoint(directory), { rank: 4 }),
      backend: tinker(backend),
      warmStart: undefined,
      ...changes,
    } as Partial<RecipeInput>,
    overrides,
  );
}
