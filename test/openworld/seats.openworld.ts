/** Both seats of a multi-agent environment of verifiers train, over the gateway. */
import { describe, expect, it } from 'vitest';
import { resolveRecipe } from '../../src/runs/composition/resolve-recipe.js';
import { pythonEnvironment } from '../support/python-environment.js';
import { eventsOf, filesOf, stepsOf, temporaryRoot, trainTiny } from '../support/tiny-run.js';

const environment = await pythonEnvironment({
  name: 'verifiers',
  requirements: new URL('seats/requirements.txt', import.meta.url),
  what: 'verifiers 0.4 (0.4 GB)',
});
if ('unavailable' in environment) console.log(`SKIPPED: the seats of verifiers, because ${environment.unavailable}`);
const root = temporaryRoot();

describe.skipIf('unavailable' in environment)("verifiers' user-sim", () => {
  it('trains an adapter for the user and another one for the assistant', async () => {
    if ('python' in environment) process.env.VERIFIERS_PYTHON = environment.python;
    const { default: definition } = await import('../../examples/verifiers/recipe.js');
    const overrides = ['training.steps=2']; // the whole warm start: before it all rewards are 0, and nothing is learnt
    const evaluation = ['evaluation.tasks=1', 'evaluation.samples=1', 'training.checkpointEvery=1'];
    const recipe = resolveRecipe(definition, { overrides: [...overrides, ...evaluation] });
    const run = await trainTiny(root, recipe);
    expect((await eventsOf(run)).filter(({ type }) => type === 'episode.failed')).toEqual([]);
    for (const { agents } of await stepsOf(run)) expect(Object.keys(agents).sort()).toEqual(['assistant', 'user']);
    const adapters = Object.entries(await filesOf(run)).filter(([file]) => /adapter.*safetensors$/.test(file));
    const last = adapters.filter(([file]) => file.includes('000002'));
    expect(last.length).toBe(2);
    expect(new Set(last.map(([, content]) => content)).size).toBe(2);
  });
});
