import { describe, expect, it } from 'vitest';
import type { EpisodeObserver, PlayObserver } from '../core/play/play-observer.js';
import { guardedObserver } from './guarded-observer.js';

const fail = (): never => {
  throw new Error('a broken processor');
};
const episode = { task: { id: 'a', data: {} }, sample: 0 };
const round = { phase: 'training', step: 1, episodes: 1 } as const;

function guarded(observer: PlayObserver) {
  const errors: unknown[] = [];
  const watched = guardedObserver(observer, (error) => errors.push(error)).round(round);
  return { watched, seen: watched.begun?.(episode), errors };
}

const observing = (observer: EpisodeObserver): PlayObserver => ({
  round: () => ({ begun: () => observer, ended: fail }),
});

describe('an observer behind its guard', () => {
  it('may throw anywhere: the team plays, once', () => {
    const { watched, seen, errors } = guarded(observing({ within: fail, answered: fail, ended: fail }));
    let played = 0;
    expect(seen?.within(() => ++played)).toBe(1);
    seen?.answered({} as never, { start: 0, end: 1 });
    seen?.ended({} as never);
    watched.ended({} as never);
    expect(played).toBe(1);
    expect(errors).toHaveLength(4);
  });

  it('may not even begin', () => {
    const { watched, seen, errors } = guarded({ round: fail });
    watched.ended({} as never);
    expect(seen).toBeUndefined();
    expect(errors).toHaveLength(1);
  });

  it('is not told of what the team throws', () => {
    const { seen, errors } = guarded(observing({ within: (run) => run(), answered: fail, ended: fail }));
    const mine = new Error('mine');
    expect(() =>
      seen?.within(() => {
        throw mine;
      }),
    ).toThrow(mine);
    expect(errors).toEqual([]);
  });
});
