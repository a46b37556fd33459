import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { AnnouncementError, QueueKey, queueKey } from './queue-key.js';

const root = mkdtempSync(join(tmpdir(), 'drmas-queue-key-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const announced = { run: 'r', url: 'http://127.0.0.1:9', source: '/home/a/recipe.ts', codeHash: 'c' };
const text = 'x'.repeat(32);
const key = new QueueKey(text, 'DRMAS_QUEUE_KEY');

describe('an announcement', () => {
  it('is read by who has the key, for the queue that it was signed for', () => {
    const signed = key.sign('drmas', announced);
    expect(key.read('drmas', signed)).toEqual(announced);
    const other = new QueueKey('y'.repeat(32), '/home/b/queue-key');
    expect(() => other.read('drmas', signed)).toThrow('not signed with the key in /home/b/queue-key');
    expect(() => key.read('other', signed)).toThrow(AnnouncementError);
  });

  it('has no secret: neither the key nor what workers register with', () => {
    const signed = key.sign('drmas', announced);
    for (const secret of [text, key.door('r'), key.proof('r', 'n')]) expect(signed).not.toContain(secret);
    expect(JSON.stringify(key)).not.toContain(text);
    expect(new Set([key.door('r'), key.door('s'), key.proof('r', 'n'), key.proof('r', 'm')]).size).toBe(4);
  });

  it('is refused if one character of it differs', () => {
    const signed = key.sign('drmas', announced);
    const change = fc.record({ at: fc.nat({ max: signed.length - 1 }), by: fc.string({ minLength: 1, maxLength: 1 }) });
    fc.assert(
      fc.property(change, ({ at, by }) => {
        const changed = signed.slice(0, at) + by + signed.slice(at + 1);
        fc.pre(changed !== signed);
        expect(() => key.read('drmas', changed)).toThrow(AnnouncementError);
      }),
    );
  });

  it.each(['', 'hello', '{', 'null', '7', '[]', '"text"', '{"body":1,"signature":"x"}', '{"run":"x","secret":"s"}'])(
    'is not the text %j',
    (other) => {
      expect(() => key.read('drmas', other)).toThrow('it is not the announcement of a run');
    },
  );
});

describe('the key of a queue', () => {
  it('is the variable, or a file that only this user can read, which is made once', async () => {
    const file = join(root, 'config', 'queue-key');
    expect((await queueKey({ DRMAS_QUEUE_KEY: ` ${text}\n` }, file)).door('r')).toBe(key.door('r'));
    const keys = await Promise.all(Array.from({ length: 8 }, () => queueKey({}, file)));
    expect(new Set(keys.map((each) => each.door('r'))).size).toBe(1);
    expect(keys[0]?.place).toBe(file);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect((await queueKey({ DRMAS_QUEUE_KEY: readFileSync(file, 'utf8') }, '')).door('r')).toBe(keys[0]?.door('r'));
  });

  it('is refused if it is short, or others can read its file', async () => {
    await expect(queueKey({ DRMAS_QUEUE_KEY: 'secret' })).rejects.toThrow(
      'the key in DRMAS_QUEUE_KEY has 6 characters; expected at least 32',
    );
    const file = join(root, 'open');
    writeFileSync(file, text);
    chmodSync(file, 0o644);
    await expect(queueKey({}, file)).rejects.toThrow(`other users can read the key in ${file}`);
    await expect(queueKey({}, join(file, 'below'))).rejects.toThrow('set DRMAS_QUEUE_KEY');
  });
});
