import { RecipeError } from '@drmas/engine/errors';
import { expect, it } from 'vitest';
import { openRollouts } from './open-rollouts.js';
import { rolloutContext } from './rollouts.js';

const settings = { agents: {}, seed: 3, maxTurns: 2, timeoutMs: 100, partWeights: { correct: 2 } };
const ignored = { onIgnored: () => {} };

it('keeps every setting, the speakers and the functions of the program', async () => {
  const warn = () => {};
  const { context, close } = await openRollouts(settings, {}, { gateway: undefined, warn, ...ignored });
  await close();
  expect(context).toMatchObject({ ...settings, policies: {}, warn });
  expect(rolloutContext(settings, {}).inScope).toBe(context.inScope);
});

it('opens the gateway of the recipe, and closes it', async () => {
  const gateway = { host: '127.0.0.1', port: 0, maxCalls: 2 };
  const first = await openRollouts(settings, {}, { gateway, ...ignored });
  await first.close();
  await expect(openRollouts(settings, {}, { gateway: { ...gateway, host: '192.0.2.1' }, ...ignored })).rejects.toThrow(
    RecipeError,
  );
});
