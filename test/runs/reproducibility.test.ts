import { join } from 'node:path';
import type { Step } from '@drmas/engine/events';
import { describe, expect, it } from 'vitest';
import type { RecipeInput } from '../../src/method/recipe/define.js';
import {
  concurrentTeam,
  eventsOf,
  filesOf,
  temporaryRoot,
  tinyRecipe,
  trainTiny,
  useCache,
} from '../support/tiny-run.js';

const root = temporaryRoot();
let caches = 0;
const freshCache = () => useCache(join(root, `cache-${caches++}`));

describe('the same seed gives the same run, bit for bit', () => {
  const kinds: Record<string, Partial<RecipeInput>> = {
    'a policy for each agent': {},
    'one policy for all': { assign: 'shared' },
    'agents that are called at once': { team: concurrentTeam },
  };
  for (const [name, changes] of Object.entries(kinds)) {
    const tags = name === 'a policy for each agent' ? [] : ['verify' as const];
    it(`${name}: at any number of threads, with and without a cached warm start`, { tags }, async () => {
      const recipe = tinyRecipe(changes);
      const notices: string[] = [];
      const options = { notify: (message: string) => void notices.push(message) };
      freshCache();
      const trained = await trainTiny(root, recipe, { threads: 1, ...options });
      expect(notices).toEqual([]);
      const cached = await trainTiny(root, recipe, { threads: 2, ...options });
      expect(notices).toEqual([expect.stringMatching(/^Warm start from the cache/)]);
      freshCache();
      const again = await trainTiny(root, recipe, { threads: 2 });

      const [events, files] = [await eventsOf(trained), await filesOf(trained)];
      expect(events.at(-1)).toMatchObject({ type: 'run.finished', reason: 'completed', steps: 4 });
      expect(Object.keys(files).filter((name) => name.endsWith('optimizer.safetensors')).length).toBeGreaterThan(1);
      for (const run of [cached, again]) {
        expect(await eventsOf(run)).toEqual(events);
        expect(await filesOf(run)).toEqual(files);
      }
    });
  }

  it('and another seed another one, from the same warm start', { tags: 'verify' }, async () => {
    const [one, other] = [await trainTiny(root, tinyRecipe()), await trainTiny(root, tinyRecipe({}, ['seed=2']))];
    const [events, others] = [await eventsOf(one), await eventsOf(other)];
    const ofType = (type: string, list: typeof events) => list.filter((event) => event.type === type);
    expect(ofType('warmup', others)).toEqual(ofType('warmup', events));
    expect(ofType('step', others)[0]).not.toEqual(ofType('step', events)[0]);
    const [files, otherFiles] = [await filesOf(one), await filesOf(other)];
    expect(Object.keys(otherFiles)).toEqual(Object.keys(files));
    for (const [name, hash] of Object.entries(files)) {
      if (!name.endsWith('state.json')) expect(otherFiles[name], name).not.toBe(hash);
    }
  });
});

describe('on-policy', () => {
  const deviations = async (overrides: readonly string[]) => {
    const events = await eventsOf(await trainTiny(root, tinyRecipe({}, overrides)));
    const steps = events.filter((event): event is Step => event.type === 'step');
    expect(steps).toHaveLength(4);
    return steps.flatMap(({ agents }) =>
      Object.values(agents).flatMap(({ maxRatioDeviation }) => maxRatioDeviation ?? []),
    );
  };

  it('every first ratio of a step is exactly 1, at any temperature', async () => {
    const sampling = [
      'agents.solver.sampling.temperature=0.7',
      'agents.solver.sampling.topP=0.9',
      'agents.verifier.sampling.temperature=1.5',
      'agents.verifier.sampling.topK=20',
    ];
    expect(new Set(await deviations(sampling))).toEqual(new Set([0]));
  });

  it.each([['miniBatches'], ['epochs']])('with 2 %s the later ratios are not', async (setting) => {
    const largest = await deviations([`policies.solver.${setting}=2`, `policies.verifier.${setting}=2`]);
    expect(Math.max(...largest)).toBeGreaterThan(0);
    expect(Math.max(...largest)).toBeLessThan(0.1);
  });
});
