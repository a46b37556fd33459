import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readArchive } from './tar-archive.js';

describe('readArchive', () => {
  let root: string;
  beforeAll(() => {
    root = mkdtempSync(join(tmpdir(), 'drmas-archive-'));
  });
  afterAll(() => rmSync(root, { recursive: true }));

  const content = { 'adapter_config.json': '{"r": 4}', 'adapter_model.safetensors': 'x'.repeat(1300), empty: '' };
  const packed = () => {
    for (const [name, text] of Object.entries(content)) writeFileSync(join(root, name), text);
    execFileSync('tar', ['--format=ustar', '-cf', join(root, 'all.tar'), '-C', root, ...Object.keys(content)]);
    return new Uint8Array(readFileSync(join(root, 'all.tar')));
  };

  it.each(['plain', 'gzipped'])('finds the files of a %s archive', (kind) => {
    const bytes = kind === 'plain' ? packed() : new Uint8Array(gzipSync(packed()));
    const files = readArchive(bytes);
    expect([...files].map(([name, data]) => [name, Buffer.from(data).toString()])).toEqual(Object.entries(content));
  });

  it('refuses bytes that are not an archive, and half an archive', () => {
    expect(() => readArchive(new Uint8Array(1024).fill(65))).toThrow(/did not send a complete tar archive/);
    const backwards = packed();
    // minus the length of a header: the reader would never advance
    backwards.set(Buffer.from('-1000\0'.padEnd(12)), 124);
    expect(() => readArchive(backwards)).toThrow(/did not send a complete tar archive/);
    expect(() => readArchive(packed().slice(0, 1536))).toThrow(/did not send a complete tar archive/);
  });
});
