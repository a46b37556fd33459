import { createHash } from 'node:crypto';
import * as fs from 'node:fs/promises';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ModelCache } from './model-cache.js';
import { findModel } from './model-directory.js';
import { modelsOnDisk } from './models-on-disk.js';

describe('a file of a snapshot', () => {
  const names = { symlink: vi.fn<typeof fs.symlink>(), link: vi.fn<typeof fs.link>() };

  const commit = 'a'.repeat(40);
  const refusal = (code: string) => Object.assign(new Error(`${code}: no`), { code });

  let root: string;
  let cache: ModelCache;
  beforeEach(async () => {
    root = await fs.mkdtemp(join(tmpdir(), 'drmas-links-'));
    cache = new ModelCache(root, { name: 'org/name', revision: 'main' }, names);
    names.symlink.mockImplementation(fs.symlink);
    names.link.mockImplementation(fs.link);
    await fs.mkdir(join(cache.directory, 'blobs'), { recursive: true });
    await fs.writeFile(cache.blob('b1'), 'weights');
  });
  afterEach(async () => {
    names.symlink.mockReset();
    names.link.mockReset();
    await fs.rm(root, { recursive: true });
  });

  const linked = async () => {
    await cache.link(commit, 'model.safetensors', 'b1');
    const path = join(cache.snapshot(commit), 'model.safetensors');
    return {
      text: await fs.readFile(path, 'utf8'),
      status: await fs.lstat(path),
      blob: await fs.stat(cache.blob('b1')),
    };
  };

  it('is a link to its blob', async () => {
    const { text, status } = await linked();
    expect([text, status.isSymbolicLink()]).toEqual(['weights', true]);
  });

  it('is a second name of it where nobody may make links, as on Windows', async () => {
    names.symlink.mockRejectedValue(refusal('EPERM'));
    const { text, status, blob } = await linked();
    expect([text, status.isSymbolicLink(), status.ino]).toEqual(['weights', false, blob.ino]);
    expect(await cache.files(commit)).toEqual(new Set(['model.safetensors']));
    expect((await linked()).text).toBe('weights'); // and takes the place of one that is there
  });

  it('is a copy where there are no second names either', async () => {
    names.symlink.mockRejectedValue(refusal('EPERM'));
    names.link.mockRejectedValue(refusal('EPERM'));
    const { text, status, blob } = await linked();
    expect(text).toBe('weights');
    expect(status.ino).not.toBe(blob.ino);
  });

  it('is not there where the disk is full, and leaves nothing behind', async () => {
    names.symlink.mockRejectedValue(refusal('ENOSPC'));
    await expect(linked()).rejects.toThrow('ENOSPC');
    expect(await fs.readdir(cache.snapshot(commit))).toEqual([]);
  });
});

describe('models on disk', () => {
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
});
