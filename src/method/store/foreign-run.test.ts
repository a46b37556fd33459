/** Runs of strangers: nothing that is stored leads drmas out of the run. */
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { contentHash, sealState } from '@drmas/engine/disk';
import { nodeFiles } from '@drmas/engine/platform';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { commitsOf, warmStartOf } from '../training/checkpoint.js';
import { readAblation } from './ablation-record.js';
import { RunDirectory } from './run-directory.js';
import { requireRun } from './run-path.js';
import { parseRecord } from './run-record.js';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'drmas-foreign-'));
});
afterEach(() => rmSync(root, { recursive: true }));

const record = {
  version: 1 as const,
  recipe: { source: 'math', overrides: [], codeHash: 'abc' },
  resolved: { assign: { solver: 'solver' }, policies: { solver: {} } },
  acceptedChanges: [],
};

/** Names that lead out of a folder, or that every object has. */
const names = ['../out', '..', '.', 'a/../../out', '/tmp/out', 'a\\..\\out', 'C:out', 'a\0b', '', 'constructor'];

describe('a name that leads out of the run is refused', () => {
  const changes = (name: string) => [
    { resolved: { assign: { solver: name } } },
    { resolved: { assign: { [name]: 'solver' } } },
    { resolved: { policies: { [name]: {} } } },
    { agents: { [name]: { name: 'solver', sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 1 } } } },
  ];
  it.each(names)('of a policy or an agent: %j', (name) => {
    for (const change of changes(name))
      expect(() => parseRecord(JSON.stringify({ ...record, ...change }), 'recipe.json')).toThrow(
        /^recipe\.json is not the record of a run: (resolved|agents)\S*: expected a name[^\n]*$/,
      );
    for (const change of changes('a-Name_1')) parseRecord(JSON.stringify({ ...record, ...change }), 'recipe.json');
  });

  const paths = ['../out', '/etc/passwd', 'a/../../out', './x', 'a//b', 'a\\..\\b', 'C:/x', ''];
  it.each(paths)('of a file in a seal: %j', async (path) => {
    writeFileSync(join(root, 'inside'), '');
    const state = (file: string) => {
      const seal = { version: 1, files: { [file]: { bytes: 0, sha256: 'x' } } };
      writeFileSync(join(root, 'digests.json'), JSON.stringify({ ...seal, digest: contentHash(seal) }));
      return sealState(nodeFiles, root);
    };
    expect(await state(path)).toMatchObject({ why: expect.stringMatching(/is no list of digests$/) });
    expect(await state('inside')).toMatchObject({ why: expect.stringMatching(/SHA-256 differs/) });
  });

  it.each(['../../out', '/tmp/out', '..', ''])('of a folder in a cache: %j', async (name) => {
    const checkpoint = { step: 1, directory: root };
    const write = (state: object) =>
      writeFileSync(
        join(root, 'state.json'),
        JSON.stringify({ step: 1, evaluated: 0, watch: { norms: {}, dropped: {} }, ...state }),
      );
    write({ warmStart: name });
    await expect(warmStartOf(nodeFiles, checkpoint)).rejects.toThrow(/warmStart: expected a name/);
    write({ commits: { 'org/model': name } });
    await expect(commitsOf(nodeFiles, checkpoint)).rejects.toThrow(/commits\.org\/model: expected a name/);
    write({ commits: { 'org/model': 'main' }, warmStart: 'abc' });
    expect(await commitsOf(nodeFiles, checkpoint)).toEqual({ 'org/model': 'main' });
  });
});

describe('a link that leads out of the run is refused before anything is read', () => {
  it.each(['recipe.json', 'events.jsonl', 'episodes/step-000001.jsonl', 'checkpoints/step-000001', 'report.html'])(
    '%s',
    async (name) => {
      const path = join(root, 'run');
      await (await RunDirectory.create(path, record)).close();
      rmSync(join(path, name), { force: true });
      writeFileSync(join(root, 'mine'), 'mine');
      symlinkSync(join(root, 'mine'), join(path, name));
      const refusal = `${join(path, name)} is a link that leads out of ${path}`;
      await expect(RunDirectory.open(path)).rejects.toThrow(refusal);
      await expect(requireRun(nodeFiles, path)).rejects.toThrow(refusal);
      rmSync(join(root, 'mine'));
      await expect(RunDirectory.open(path)).rejects.toThrow('is a link that leads nowhere');
    },
  );

  it('ablation.json', async () => {
    writeFileSync(join(root, 'mine'), '{}');
    const path = mkdtempSync(join(root, 'ablation-'));
    symlinkSync(join(root, 'mine'), join(path, 'ablation.json'));
    await expect(readAblation(path)).rejects.toThrow('ablation.json is a link that leads out of');
  });

  it('but a link to the run, and one within it, are followed', async () => {
    const path = join(root, 'run');
    await (await RunDirectory.create(path, record)).close();
    symlinkSync(path, join(root, 'link'));
    symlinkSync('recipe.json', join(path, 'copy.json'));
    expect((await RunDirectory.open(join(root, 'link'))).record).toEqual(record);
    expect(readFileSync(join(path, 'copy.json'), 'utf8')).toContain('"abc"');
  });
});

it('an ablation of more runs than memory holds is refused', async () => {
  const vary = Array.from({ length: 12 }, (_, i) => ({ key: `training.k${i}`, values: [...'123456789'] }));
  const ablation = { version: 1, recipe: record.recipe, vary: [vary[0]], seeds: 2, baseline: '1' };
  for (const [more, isRead] of [
    [{}, true],
    [{ vary }, false],
    [{ seeds: 1e9 }, false],
  ] as const) {
    writeFileSync(join(root, 'ablation.json'), JSON.stringify({ ...ablation, ...more }));
    if (isRead) expect(await readAblation(root)).toEqual(ablation);
    else await expect(readAblation(root)).rejects.toThrow('names over 100000 runs');
  }
});
