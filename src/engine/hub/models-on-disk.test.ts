import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { findModel } from './model-directory.js';
import { modelsOnDisk } from './models-on-disk.js';

let home = '';
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'drmas-on-disk-'));
});
afterEach(() => rm(home, { recursive: true, force: true }));

const environment = () => ({ HOME: home, HF_HOME: join(home, 'hf'), HF_HUB_OFFLINE: '1' });
const find = (name: string, commit?: string) => findModel(name, { environment: environment(), commit });

async function put(path: string, content: string): Promise<string> {
  const file = join(home, path);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, content);
  return file;
}

/** A model as `ollama pull` leaves it: a manifest without extension, and blobs by their hash. */
async function pulled(name: string, weights: string): Promise<{ readonly file: string; readonly digest: string }> {
  const hash = createHash('sha256').update(weights).digest('hex');
  const file = await put(`.ollama/models/blobs/sha256-${hash}`, weights);
  const layers = [
    { mediaType: 'application/vnd.ollama.image.license', digest: `sha256:${'0'.repeat(64)}`, size: 1 },
    { mediaType: 'application/vnd.ollama.image.model', digest: `sha256:${hash}`, size: weights.length },
  ];
  await put(`.ollama/models/manifests/${name}`, JSON.stringify({ schemaVersion: 2, layers }));
  return { file, digest: `sha256:${hash}` };
}

describe('models of other programs', () => {
  it("are found by Ollama's names", async () => {
    const small = await pulled('registry.ollama.ai/library/smollm2/135m', 'GGUF small');
    const latest = await pulled('registry.ollama.ai/library/qwen3/latest', 'GGUF qwen');
    const others = await pulled('registry.ollama.ai/someone/coder/7b', 'GGUF coder');
    const hub = await pulled('hf.co/org/Model-GGUF/Q4_K_M', 'GGUF hub');
    expect((await modelsOnDisk(environment())).map(({ name, program }) => `${program} ${name}`)).toEqual([
      'Ollama hf.co/org/Model-GGUF:Q4_K_M',
      'Ollama qwen3:latest',
      'Ollama smollm2:135m',
      'Ollama someone/coder:7b',
    ]);
    expect(await find('smollm2:135m')).toEqual({ directory: small.file, commit: small.digest });
    expect((await find('qwen3')).directory).toBe(latest.file);
    expect((await find('someone/coder:7b')).directory).toBe(others.file);
    expect((await find('hf.co/org/Model-GGUF:Q4_K_M')).directory).toBe(hub.file);
  });

  it('keep the file that a run began with after the tag was pulled again', async () => {
    const before = await pulled('registry.ollama.ai/library/smollm2/135m', 'GGUF before');
    const after = await pulled('registry.ollama.ai/library/smollm2/135m', 'GGUF after');
    expect((await find('smollm2:135m')).directory).toBe(after.file);
    expect(await find('smollm2:135m', before.digest)).toEqual({ directory: before.file, commit: before.digest });
    await rm(before.file);
    await expect(find('smollm2:135m', before.digest)).rejects.toThrow('Ollama no longer has the file sha256:');
  });

  it("are found by LM Studio's folders, and by file if a folder has several", async () => {
    const only = await put('.lmstudio/models/pub/One-GGUF/one.Q8_0.gguf', 'GGUF');
    await put('.lmstudio/models/pub/One-GGUF/mmproj-one.gguf', 'GGUF');
    const q4 = await put('.lmstudio/models/pub/Two-GGUF/two.Q4_0.gguf', 'GGUF 4');
    await put('.lmstudio/models/pub/Two-GGUF/two.Q8_0.gguf', 'GGUF 8');
    await put('.lmstudio/models/pub/Two-GGUF/README.md', '');
    expect(await modelsOnDisk(environment())).toMatchObject([
      { name: 'pub/One-GGUF', program: 'LM Studio', file: only, bytes: 4 },
      { name: 'pub/Two-GGUF/two.Q4_0.gguf' },
      { name: 'pub/Two-GGUF/two.Q8_0.gguf' },
    ]);
    expect(await find('pub/One-GGUF')).toEqual({ directory: only });
    expect((await find('pub/Two-GGUF/two.Q4_0.gguf')).directory).toBe(q4);
  });

  it('are looked for where OLLAMA_MODELS says', async () => {
    const { file } = await pulled('registry.ollama.ai/library/a/b', 'GGUF');
    const elsewhere = { HOME: join(home, 'nobody'), OLLAMA_MODELS: join(home, '.ollama/models') };
    expect(await modelsOnDisk(elsewhere)).toMatchObject([{ name: 'a:b', file }]);
  });

  it('are left out when their files are damaged or gone', async () => {
    const gone = await pulled('registry.ollama.ai/library/gone/1b', 'GGUF gone');
    await rm(gone.file);
    await put('.ollama/models/manifests/registry.ollama.ai/library/broken/1b', '{"layers":');
    await put(
      '.ollama/models/manifests/registry.ollama.ai/library/outside/1b',
      '{"layers":[{"digest":"sha256:../x"}]}',
    );
    expect(await modelsOnDisk(environment())).toEqual([]);
    await expect(find('gone:1b')).rejects.toThrow('nor is it a model that Ollama or LM Studio has');
  });
});

describe('a path', () => {
  it('names a GGUF file, or a directory with one', async () => {
    const file = await put('a/model.gguf', 'GGUF');
    expect(await find(file)).toEqual({ directory: file });
    expect(await find(dirname(file))).toEqual({ directory: file });
    await put('a/other.gguf', 'GGUF');
    await expect(find(dirname(file))).rejects.toThrow('expected one GGUF file, found 2: model.gguf, other.gguf');
    await put('a/config.json', '{}');
    expect(await find(dirname(file))).toEqual({ directory: dirname(file) });
  });

  it('to a checkpoint that a run no longer has is refused with those that it has', async () => {
    await put('run/checkpoints/step-000020/fixer/config.json', '{}');
    await put('run/checkpoints/step-000024/fixer/config.json', '{}');
    await expect(find(join(home, 'run/checkpoints/step-000000/fixer'))).rejects.toThrow(
      `there is no such directory; ${join(home, 'run/checkpoints')} has step-000020, step-000024`,
    );
  });

  it('to a file of another kind is refused', async () => {
    await expect(find(await put('weights.bin', 'abcd'))).rejects.toThrow('is a file that is no GGUF file');
  });
});
