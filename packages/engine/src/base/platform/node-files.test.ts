import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { openSafetensors, readTensor, requireTensor } from '../../model/formats/safetensors.js';
import { nodeFiles } from './node-files.js';

describe('node files', () => {
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'drmas-files-'));
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  describe('files on disk', () => {
    it('have a size, and directories and devices have none', async () => {
      expect(await nodeFiles.size('package.json')).toBeGreaterThan(100);
      await expect(nodeFiles.size(tmpdir())).rejects.toThrow('it is a directory');
      await expect(nodeFiles.size('/dev/null')).rejects.toThrow('it is not a regular file');
      await expect(nodeFiles.readText('/dev/zero')).rejects.toThrow('it is not a regular file');
    });

    it('are written in parts, one after the other, and read in ranges that end with the file', async () => {
      const path = join(directory, 'parts');
      const large = new Uint8Array(2 ** 20 + 7).fill(9);
      await nodeFiles.write(path, [Uint8Array.of(1, 2), large, Uint8Array.of(), Uint8Array.of(3)]);
      expect(await nodeFiles.size(path)).toBe(large.length + 3);
      expect(await nodeFiles.readBytes(path, 1, 3)).toEqual(Uint8Array.of(2, 9, 9));
      expect(await nodeFiles.readBytes(path, large.length + 1, 10)).toEqual(Uint8Array.of(9, 3));
      expect(await nodeFiles.readBytes(path, large.length + 9, 10)).toEqual(Uint8Array.of());
      await nodeFiles.write(path, 'x'); // replaces all of it
      expect(await nodeFiles.readText(path)).toBe('x');
      await expect(nodeFiles.size(join(directory, 'missing'))).rejects.toThrow(/ENOENT/);
    });

    it('hold the bytes of parts of any size, whose memory is used again for the next', async () => {
      const path = join(directory, 'sizes');
      const memory = new Uint8Array(2 ** 18 + 1);
      const sizes = [2 ** 18 + 1, 1, 0, 2 ** 18 - 1, 2, 2 ** 18, 2 ** 18 + 1, 7];
      function* parts() {
        for (const [i, size] of sizes.entries()) yield memory.fill(i + 1).subarray(0, size);
      }
      await nodeFiles.write(path, parts());
      const whole = Buffer.concat(sizes.map((size, i) => Buffer.alloc(size, i + 1)));
      expect(whole.equals(await nodeFiles.readBytes(path, 0, whole.length + 1))).toBe(true);
      await nodeFiles.write(path, []);
      expect(await nodeFiles.size(path)).toBe(0);
    });

    it('may be larger than 4 GiB: a tensor at their end is read, and nothing before it', async () => {
      const path = join(directory, 'large.safetensors');
      const end = 5 * 2 ** 30;
      const header = {
        first: { dtype: 'F32', shape: [end / 4], data_offsets: [0, end] }, // a hole in the file
        last: { dtype: 'F32', shape: [2], data_offsets: [end, end + 8] },
      };
      const json = Buffer.from(JSON.stringify(header));
      const length = Buffer.alloc(8);
      length.writeUInt32LE(json.length);
      const file = await open(path, 'w');
      await file.write(Buffer.concat([length, json]));
      await file.write(new Uint8Array(Float32Array.of(3, -4).buffer), 0, 8, 8 + json.length + end);
      await file.close();
      const { tensors } = await openSafetensors(nodeFiles, path);
      expect(await readTensor(requireTensor(tensors, { name: 'last', shape: [2] }, path))).toEqual(
        Float32Array.of(3, -4),
      );
      for await (const piece of tensors.get('first')?.pieces() ?? []) {
        expect(piece.bytes.length).toBe(2 ** 22);
        break;
      }
    });
  });

  it('are flushed where open files have no method for it', async () => {
    const file = await open(directory);
    const sync = vi.spyOn(Object.getPrototypeOf(file), 'sync').mockRejectedValue(new Error('Method not implemented.'));
    await file.close();
    const path = join(directory, 'deep', 'flushed');
    await nodeFiles.makeDirectory(join(directory, 'deep'));
    await nodeFiles.write(path, 'a');
    await nodeFiles.flush(path);
    await nodeFiles.replace(path, 'b');
    await nodeFiles.rename(path, `${path} too`);
    sync.mockRestore();
    expect(await nodeFiles.readText(`${path} too`)).toBe('b');
  });

  it("are written and flushed under Node's permission model", async () => {
    const program = join(directory, 'program.mjs');
    const text = `import { nodeFiles } from './node-files.js';
      const path = process.argv[2] + '/saved';
      await nodeFiles.makeDirectory(path);
      nodeFiles.append(path + '/events', 'one', 0);
      await nodeFiles.write(path + '/a', 'a');
      await nodeFiles.replace(path + '/a', 'b');
      await nodeFiles.rename(path, path + ' whole');
      console.log(await nodeFiles.readText(path + ' whole/a'), await nodeFiles.list(path + ' whole'));`;
    const stdin = { contents: text, resolveDir: fileURLToPath(new URL('.', import.meta.url)) };
    await build({ stdin, bundle: true, platform: 'node', format: 'esm', outfile: program });
    const flag = ['--permission', '--experimental-permission'].find((name) =>
      process.allowedNodeEnvironmentFlags.has(name),
    );
    const allowed = [`${flag}`, `--allow-fs-read=${directory}`, `--allow-fs-write=${directory}`];
    const { stdout, stderr } = spawnSync(process.execPath, [...allowed, program, directory], { encoding: 'utf8' });
    expect(stdout, stderr).toBe("b [ 'a', 'events' ]\n");
  });

  it.skipIf(!existsSync('/dev/full'))('names the file that a disk has no room for', async () => {
    await expect(nodeFiles.write('/dev/full', 'more')).rejects.toThrow(
      "ENOSPC: no space left on device, write '/dev/full'",
    );
  });

  describe('appending', () => {
    it('continues a file of the expected size alone', async () => {
      const path = join(directory, 'log');
      nodeFiles.append(path, 'ä\n', 0);
      nodeFiles.append(path, 'b\n', 3);
      expect(await nodeFiles.readText(path)).toBe('ä\nb\n');
      for (const at of [0, 4, 6])
        expect(() => nodeFiles.append(path, 'c\n', at)).toThrow(`has 5 bytes, expected ${at}`);
      await rm(path);
      expect(() => nodeFiles.append(path, 'c\n', 5)).toThrow(/ENOENT/);
    });
  });

  describe('replacing', () => {
    it('leaves the old content or the new one, and no temporary file', async () => {
      const place = join(directory, 'replaced');
      await nodeFiles.makeDirectory(place);
      const path = join(place, 'recipe.json');
      await nodeFiles.replace(path, 'one');
      await nodeFiles.replace(path, 'two');
      await nodeFiles.makeDirectory(join(place, 'full'));
      await expect(nodeFiles.replace(join(place, 'full'), 'three')).rejects.toThrow(/EISDIR/);
      expect(await nodeFiles.readText(path)).toBe('two');
      expect(await nodeFiles.list(place)).toEqual(['full', 'recipe.json']);
    });
  });

  describe('a lock', () => {
    /** Locks a file in another process and reports it; that process then waits for ever. */
    async function lockElsewhere(path: string): Promise<ChildProcess> {
      const module = JSON.stringify(fileURLToPath(new URL('./node-files.ts', import.meta.url)));
      const script = `import(${module}).then(async ({ lockFile }) => {
      console.log((await lockFile(${JSON.stringify(path)}, 'elsewhere')).type);
      setInterval(() => {}, 1e6);
    });`;
      const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script]);
      const [answer] = await once(child.stdout, 'data');
      expect(String(answer)).toBe('held\n');
      return child;
    }

    it('is held by one process, names the holder, and is free as soon as that process is killed', async () => {
      const path = join(directory, 'lock');
      const child = await lockElsewhere(path);
      expect(await nodeFiles.lock(path, 'here')).toEqual({ type: 'taken', note: 'elsewhere' });
      child.kill('SIGKILL');
      await once(child, 'exit');
      const lock = await nodeFiles.lock(path, 'here');
      expect(lock.type).toBe('held');
      expect(await nodeFiles.lock(path, 'again')).toEqual({ type: 'taken', note: 'here' });
      if (lock.type === 'held') await lock.release();
      const next = await nodeFiles.lock(path, 'next');
      expect(next.type).toBe('held');
      if (next.type === 'held') await next.release();
    });
  });
});
