import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { APART, choose, SUITES } from '../.ci/suites.mjs';
import { checks } from './verify.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const slow = Array.from({ length: 400 }, (_, i) => `src/room-${i}/part.test.ts`);
const commit = { tree: 'a'.repeat(40), changed: [] as string[], slow };

describe('the choice of slow checks', () => {
  it('knows the paths of each check of the slow suites, or why it stands apart', () => {
    expect([...Object.keys(SUITES), ...Object.keys(APART)].sort()).toEqual(Object.keys(checks).sort());
    const missing = Object.values(SUITES).flatMap(({ paths }) => paths.filter((path) => !existsSync(join(root, path))));
    expect(missing).toEqual([]);
    for (const name of Object.keys(SUITES).filter((name) => existsSync(join(root, 'test', name))))
      expect(SUITES[name]?.paths, name).toContain(`test/${name}`);
  });

  it('takes the suites of what changed, those first that check most of it, until the time is used up', () => {
    expect(choose(commit).suites).toEqual([]);
    const changed = ['src/cluster/queue/a.ts', 'src/cluster/queue/b.ts', 'src/runs/trackers/c.ts'];
    expect(choose({ ...commit, changed }).suites).toEqual(['hosts', 'queue', 'trackers']);
    expect(choose({ ...commit, changed: ['src/cluster-of-others/a.ts'] }).suites).toEqual([]);
    const most = choose({ ...commit, changed: undefined });
    expect(most.skipped.length).toBeGreaterThan(0);
    const reasons = most.skipped.filter(([name]) => name in SUITES).map(([, why]) => why);
    expect(new Set(reasons)).toEqual(new Set(['suites of which more changed use up the time']));
    expect(most.slow).toHaveLength(45);
    const seconds = most.suites.reduce((sum, name) => sum + (SUITES[name]?.seconds ?? 0), 0);
    expect(seconds).toBeLessThanOrEqual(900);
  });

  it('takes the slow tests that changed or whose source did, and a quarter of the others by the tree', () => {
    const changed = ['src/room-7/part.ts', 'src/room-8/part.test.ts', 'src/room-9/other.ts'];
    const chosen = choose({ ...commit, changed }).slow;
    expect(chosen).toEqual(expect.arrayContaining(['src/room-7/part.test.ts', 'src/room-8/part.test.ts']));
    expect(choose(commit).slow).toHaveLength(45);
    const few = { ...commit, slow: slow.slice(0, 100) };
    expect(choose(few).slow.length).toBeGreaterThan(10);
    expect(choose(few).slow.length).toBeLessThan(40);
    expect(choose(commit).slow).toEqual(choose({ ...commit }).slow);
    expect(choose({ ...commit, tree: 'b'.repeat(40) }).slow).not.toEqual(choose(commit).slow);
  });

  it('takes everything if asked', () => {
    const { suites, slow: files, skipped } = choose({ ...commit, all: true });
    expect(suites.sort()).toEqual(Object.keys(SUITES).sort());
    expect([files, skipped]).toEqual([[...slow].sort(), []]);
  });
});
