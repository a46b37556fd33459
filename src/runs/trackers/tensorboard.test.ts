import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TrackedRun } from '@drmas/engine/host';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { run as events } from '../../../test/fixtures/run-events.js';
import { measurementsOf } from './measurements.js';
import { crc32c, maskedCrc32c, tensorboard } from './tensorboard.js';

describe('tensorboard', () => {
  let path: string;
  beforeEach(async () => {
    path = await mkdtemp(join(tmpdir(), 'drmas-tensorboard-'));
  });
  afterEach(() => rm(path, { recursive: true }));

  const tracked = (changes: Partial<TrackedRun> = {}): TrackedRun => ({
    path,
    name: 'run',
    recipe: 'math',
    settings: {},
    events: [],
    acceptedChanges: 0,
    environment: {},
    ...changes,
  });

  /** The data of the records of the only event file, with their frames checked. */
  async function records(): Promise<Buffer[]> {
    const files = (await readdir(path)).filter((name) => name.includes('tfevents'));
    expect(files).toHaveLength(1);
    const bytes = await readFile(join(path, files[0] ?? ''));
    const data: Buffer[] = [];
    for (let at = 0; at < bytes.length; ) {
      const length = Number(bytes.readBigUInt64LE(at));
      expect(bytes.readUInt32LE(at + 8)).toBe(maskedCrc32c(bytes.subarray(at, at + 8)));
      const record = bytes.subarray(at + 12, at + 12 + length);
      expect(bytes.readUInt32LE(at + 12 + length)).toBe(maskedCrc32c(record));
      data.push(record);
      at += length + 16;
    }
    return data;
  }

  /** How often each measurement of the made-up run is written. */
  async function timesWritten(): Promise<number[]> {
    const all = Buffer.concat(await records());
    const names = [...new Set(events.flatMap(measurementsOf).map(({ name }) => name))];
    return names.map((name) => {
      const tag = Buffer.from([0x0a, name.length, ...Buffer.from(name)]);
      let times = 0;
      for (let at = all.indexOf(tag); at >= 0; at = all.indexOf(tag, at + 1)) times++;
      return times - events.flatMap(measurementsOf).filter((one) => one.name === name).length;
    });
  }

  describe('crc32c', () => {
    it.each([
      ['123456789', 0xe3069283],
      ['\0'.repeat(32), 0x8a9136aa], // RFC 3720, appendix B.4
    ])('of %j', (text, sum) => {
      expect(crc32c(Buffer.from(text))).toBe(sum);
    });
  });

  describe('--track tensorboard', () => {
    it('writes every measurement of a run once, in framed records', async () => {
      const sink = await tensorboard.open(tracked());
      for (const event of events) await sink.event(event);
      expect((await records())[0]?.toString('latin1')).toContain('brain.Event:2');
      expect(new Set(await timesWritten())).toEqual(new Set([0]));
    });

    it('writes a resumed run anew from its log, so that no step is there twice', async () => {
      const first = await tensorboard.open(tracked());
      for (const event of events) await first.event(event);
      const kept = events.slice(0, 6);
      const second = await tensorboard.open(tracked({ events: kept }));
      for (const event of events.slice(6)) await second.event(event);
      expect(new Set(await timesWritten())).toEqual(new Set([0]));
    });

    it('keeps the earlier file of a resume that does not begin', async () => {
      const first = await tensorboard.open(tracked());
      for (const event of events) await first.event(event);
      const before = await records();
      const refused = await tensorboard.open(tracked({ events: events.slice(0, 6) }));
      await refused.close();
      expect(await records()).toEqual(before);
    });

    it('says that a directory cannot be written', async () => {
      await expect(tensorboard.open(tracked({ path: join(path, 'none') }))).rejects.toThrow(
        /cannot write TensorBoard's event file/,
      );
    });
  });
});
