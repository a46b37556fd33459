import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { writeMiniQwen3 } from '../../../../test/support/qwen3-mini.js';
import { user } from '../base/core/message.js';
import { nodeFiles } from '../base/platform/node-files.js';
import { readTokenizer, writeTokenizer } from '../model/formats/tokenizer-files.js';
import { wholeWeights } from '../model/initial-weights.js';
import { type CheckpointSpec, checkpoint, lora } from '../model/model-spec.js';
import { withLocalModels } from './local-models.js';

const root = mkdtempSync(join(tmpdir(), 'drmas-local-models-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const model = (name: string, template?: string) => {
  const directory = join(root, name);
  writeMiniQwen3(directory);
  if (template !== undefined) writeFileSync(join(directory, 'chat_template.jinja'), template);
  return directory;
};
const plain = model('plain');
const dated = model('dated', "{{ strftime_now('%d %b %Y') }}, {{ messages[0].content }}");

const clockOf = (date: string) => ({ seconds: () => 0, now: () => new Date(`${date}T23:30`) });
const read = (spec: CheckpointSpec) => {
  const weights = wholeWeights(spec, 0);
  if (weights.type !== 'directory') throw new Error('expected a directory');
  return readTokenizer(nodeFiles, weights.directory, weights.chatTemplate);
};
const promptOf = async (spec: CheckpointSpec) => {
  const tokenizer = await read(spec);
  return tokenizer.decode(tokenizer.chat([user('hi')]));
};

describe('a chat template that writes the date', () => {
  const monday = clockOf('2026-11-30');
  const tuesday = clockOf('2026-12-01');

  it('writes the first date of a run on later days, and in the files of its checkpoints', async () => {
    const begun = await withLocalModels(lora(checkpoint(dated), { rank: 2 }), { clock: monday });
    expect(begun.commits).toEqual({ drmas_date: '2026-11-30' });
    const base = begun.settings.base as CheckpointSpec;
    expect(await promptOf(base)).toBe('30 Nov 2026, hi');
    const resumed = await withLocalModels(checkpoint(dated), { clock: tuesday, commits: begun.commits });
    expect(resumed).toEqual({ settings: base, commits: begun.commits });
    const other = await withLocalModels(checkpoint(dated), { clock: tuesday });
    expect(await promptOf(other.settings)).toBe('01 Dec 2026, hi');

    const saved = join(root, 'saved');
    mkdirSync(saved);
    await writeTokenizer(nodeFiles, saved, await read(base));
    expect(await promptOf(checkpoint(saved))).toBe('30 Nov 2026, hi');
    const placed = await withLocalModels(checkpoint(saved), { clock: tuesday });
    expect(await promptOf(placed.settings)).toBe('30 Nov 2026, hi');
    const set = checkpoint(saved, { variables: { drmas_date: '2024-07-26' } });
    expect(await promptOf((await withLocalModels(set, { clock: tuesday })).settings)).toBe('26 Jul 2024, hi');
  });

  it('writes the date that its recipe sets', async () => {
    const spec = checkpoint(dated, { variables: { drmas_date: '2024-07-26' } });
    expect(await withLocalModels(spec, { clock: monday })).toEqual({ settings: spec, commits: {} });
    expect(await promptOf(spec)).toBe('26 Jul 2024, hi');
    for (const wrong of ['26 Jul 2024', '2024-02-31', 7])
      await expect(read(checkpoint(dated, { variables: { drmas_date: wrong } }))).rejects.toThrow(
        'drmas_date: expected a date such as "2026-07-26", got',
      );
  });

  it('may be a template of the recipe; other templates get no date', async () => {
    const written = { chatTemplate: "{{ strftime_now('%F') }}" };
    const settings = {
      a: checkpoint(plain),
      b: checkpoint(plain, written),
      c: checkpoint(dated, { chatTemplate: 'plain' }),
    };
    const { settings: placed } = await withLocalModels(settings, { clock: monday });
    expect(placed).toEqual({ ...settings, b: { ...settings.b, variables: { drmas_date: '2026-11-30' } } });
    expect(await promptOf(placed.b)).toBe('2026-11-30');
  });
});
