import { mkdir, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { ggufOf } from '@drmas/engine/internal/model/formats/gguf/gguf-model';
import { openModelDirectory } from '@drmas/engine/internal/model/formats/hugging-face-directory';
import { nodeFiles } from '@drmas/engine/platform';
import { beforeAll, describe, expect, it } from 'vitest';
import { goldenPath } from '../../test/goldens.js';
import { drmas, plainRecipe } from '../../test/support/command-line.js';
import { quickPlace } from '../../test/support/quick-place.js';
import { temporaryRoot } from '../../test/support/tiny-run.js';
import type { Recipe } from '../method/recipe/recipe.js';
import { RunDirectory } from '../method/store/run-directory.js';
import type { RunPlace } from '../runs/run/execute/start-run.js';
import { commands, shortNames } from './commands/index.js';
import { type Command, flagName } from './define-command.js';
import { allowHost, device, ownDevice, withModel } from './flags.js';

describe('--device', () => {
  const root = temporaryRoot();
  const file = join(root, 'pair.ts');
  beforeAll(() => writeFile(file, plainRecipe));

  /** Replacements that only remember the device of the recipes and the host. */
  function noted() {
    const devices: unknown[] = [];
    const note = ({ backend }: Recipe, host: unknown = {}) => {
      devices.push((host as { device?: unknown }).device ?? ('device' in backend ? backend.device : undefined));
      throw new Error('noted');
    };
    const place = {
      requireKernels: async () => {},
      executeRun: async (recipe, log, host, begun) => {
        const { device: wanted } = host;
        devices.push(wanted ?? ('device' in recipe.backend ? recipe.backend.device : undefined));
        await quickPlace.executeRun(recipe, log, host, begun);
      },
      evaluateCheckpoint: async (recipe) => note(recipe),
    } satisfies Partial<RunPlace>;
    return { devices, replaced: { place, forecastRun: async (recipe: Recipe) => note(recipe) } };
  }

  it('is a flag of all commands that compute, and of those alone', () => {
    const all = [...commands, ...shortNames];
    const computing = all.filter(({ flags }) => flags.threads !== undefined).map(({ name }) => name);
    const flagged = all
      .filter(({ flags }) => flags.device === device || flags.device === ownDevice)
      .map(({ name }) => name);
    expect(flagged).toEqual(computing.filter((name) => name !== 'watch')); // which answers beside a training
    expect(all.filter(({ flags }) => flags.device !== undefined)).toHaveLength(flagged.length);
  });

  it.each([
    ['train', file, '--run', join(root, 'trained')],
    ['plan', file, '--play'],
    ['plan', file],
    ['compare', file, '--run', join(root, 'compared')],
    ['ablate', file, '--vary', 'training.steps=1,2', '--seeds', '1', '--run', join(root, 'ablated')],
    ['evaluate', join(root, 'trained')],
  ])('%s computes on the device of the flag', async (...words) => {
    const { devices, replaced } = noted();
    await drmas([...words, '--device', 'gpu'], replaced);
    expect(new Set(devices)).toEqual(new Set(['gpu']));
  });

  it('of resume selects the device from now on, and is repeated in the command to resume', async () => {
    const run = join(root, 'resumed');
    const interruption = new AbortController();
    const { devices, replaced } = noted();
    const executeRun: RunPlace['executeRun'] = async (recipe, log, host, begun) => {
      interruption.abort(new Error('interrupted'));
      await replaced.place.executeRun(recipe, log, host, begun);
    };
    const typed = { ...replaced, place: { ...replaced.place, executeRun }, signal: interruption.signal };
    expect((await drmas(['train', file, '--run', run], typed)).out).not.toContain('--device');
    expect((await drmas(['resume', run, '--device', 'gpu'], typed)).out).toMatch(/drmas resume .* --device gpu/);
    await drmas(['resume', run], replaced);
    expect(devices).toEqual([undefined, 'gpu', undefined]);
  });

  it('refuses an unknown device before any work', async () => {
    const { devices, replaced } = noted();
    expect(await drmas(['train', file, '--device', 'tpu'], replaced)).toMatchObject({
      code: 2,
      err: expect.stringMatching(/'tpu' is invalid.*cpu, gpu/),
    });
    expect(devices).toEqual([]);
  });
});

describe('--model', () => {
  const root = temporaryRoot();

  it('becomes a setting that --set can refine, with paths from the working directory', async () => {
    await mkdir(join(root, 'm'));
    const near = relative(process.cwd(), join(root, 'm'));
    const lora = (path: string) => `model={"type":"lora","base":{"type":"checkpoint","path":"${path}"},"rank":16}`;
    expect(withModel({ set: ['model.rank=4'], model: near })).toEqual({
      set: [lora(join(root, 'm')), 'model.rank=4'],
    });
    expect(withModel({ set: [], model: 'smollm2:135m' }).set).toEqual([lora('smollm2:135m')]);
    expect(withModel({ set: ['seed=1'] })).toEqual({ set: ['seed=1'] });
  });

  it("trains adapters on a GGUF file in place of a file's own model, without a warm start", async () => {
    const { model, tokenizer, tensors } = await openModelDirectory(nodeFiles, goldenPath('models/qwen2-mini'));
    const gguf = join(root, 'model.gguf');
    await writeFile(gguf, ggufOf({ config: model.config, tokenizer, name: 'x' }, tensors.values()));
    const file = join(root, 'pair.ts');
    await writeFile(file, plainRecipe);
    const run = join(root, 'run');
    const short = ['training.steps=1', 'training.tasksPerStep=1', 'training.groupSize=2', 'evaluation.tasks=1'];
    const set = [...short, 'evaluation.samples=1', 'warmStart=null', 'model.rank=2'].flatMap((each) => ['--set', each]);
    expect(await drmas(['train', file, '--model', gguf, '--run', run, '--threads', '1', ...set])).toMatchObject({
      code: 0,
    });
    const { record } = await RunDirectory.open(run);
    expect(record.resolved).toMatchObject({
      policies: { solver: { model: { type: 'lora', rank: 2, base: { type: 'checkpoint', path: gguf } } } },
    });
    const to = join(root, 'out');
    expect(await drmas(['export', run, '--agent', 'solver', '--to', to])).toMatchObject({ code: 0 });
    expect(await nodeFiles.exists(join(to, 'model.safetensors'))).toBe(true); // merged with the file's weights
  });
});

/** Each command as it is typed, with those below others. */
function typed(list: readonly Command[], above: readonly string[] = []): [words: readonly string[], Command][] {
  return list.flatMap((command) => {
    const words = [...above, command.name];
    return [[words, command] as [readonly string[], Command], ...typed(command.subcommands ?? [], words)];
  });
}

describe('an empty word, as of a variable of the shell that is not set', () => {
  it.each(typed([...commands, ...shortNames]).map(([words, command]) => ({ name: words.join(' '), words, command })))(
    'is no argument of $name, and no value of its flags',
    async ({ words, command: { arguments: args, flags } }) => {
      const required = Object.entries(flags).filter(([, flag]) => flag.required === true);
      const needed = required.flatMap(([key]) => [flagName(key), 'x']);
      for (const i of args.keys()) {
        const given = args.slice(0, i + 1).map((_, j) => (j === i ? '' : 'x'));
        const { code, err } = await drmas([...words, ...given, ...needed]);
        expect({ code, err }).toEqual({
          code: 2,
          err: expect.stringContaining(`argument '${args[i]?.name}'. it is empty`),
        });
      }
      for (const [key, { value, choices }] of Object.entries(flags)) {
        if (value === undefined) continue;
        const { code, err } = await drmas([...words, ...args.map(() => 'x'), flagName(key), '']);
        expect({ code, err }).toMatchObject({ code: 2, err: expect.stringContaining(`'${flagName(key)} <${value}>'`) });
        expect(err).toMatch(choices === undefined ? /it is empty; is a variable/ : /Allowed choices are/);
      }
    },
  );
});

it.each(['watch', 'serve'])('%s takes ports that there are', async (name) => {
  for (const wrong of ['-1', '65536', '99999', '80.5', 'http', ' ', '1e99'])
    expect(await drmas([name, 'nowhere', '--port', wrong])).toMatchObject({
      code: 2,
      err: expect.stringContaining(`expected an integer from 0 to 65535, got '${wrong}'`),
    });
});

it('--allow-host takes hosts as requests name them, and refuses an address', () => {
  const read = (word: string) => allowHost.parse?.(word, ['a.example']);
  expect(read('Train.Example:80')).toEqual(['a.example', 'train.example']);
  expect(() => read('http://train.example')).toThrow(
    "expected a name such as train.example, got 'http://train.example'",
  );
});
