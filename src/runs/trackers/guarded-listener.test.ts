import type { RunEvent } from '@drmas/engine/events';
import type { RunListener } from '@drmas/engine/host';
import { describe, expect, it } from 'vitest';
import { run as events } from '../../../test/fixtures/run-events.js';
import { GuardedListener } from './guarded-listener.js';

const [first] = events as [RunEvent, ...RunEvent[]];
const fail = (): never => {
  throw new Error('a broken processor');
};
const round = { phase: 'training', step: 1, episodes: 1 } as const;
const begun = { round, task: { id: 'a', data: {} }, sample: 0 };

function guarded(listener: RunListener) {
  const notices: string[] = [];
  const watched = new GuardedListener(listener, 'listener 1', (message) => notices.push(message));
  return { watched, notices };
}

describe('the events of a guarded listener', () => {
  it('come in order, as copies, and the listener is closed at the end', async () => {
    const received: string[] = [];
    const { watched } = guarded({
      event: async (event) => {
        await new Promise((resolve) => setImmediate(resolve));
        received.push(event.type);
        Object.assign(event, { type: 'changed' });
      },
      close: () => void received.push('closed'),
    });
    for (const event of events) watched.event(event);
    expect(received).toEqual([]); // the listener's code does not run inside the run
    await watched.close();
    expect(received).toEqual([...events.map(({ type }) => type), 'closed']);
  });

  it('may make it throw: that is reported once, by its name', async () => {
    let closed = false;
    const { watched, notices } = guarded({
      name: 'my chat',
      event: ({ type }) => {
        if (type === 'step') throw new Error('no network');
      },
      close: () => {
        closed = true;
        throw new Error('still no network');
      },
    });
    for (const event of events) watched.event(event);
    await watched.close();
    expect(notices).toEqual(['my chat failed, and the run continues: no network']);
    expect(closed).toBe(true);
  });

  it('may never be handled: the queue has an end, the run does not wait long, and both are reported once', async () => {
    const { watched, notices } = guarded({ event: () => new Promise<void>(() => {}) });
    for (let i = 0; i < 10_500; i++) watched.event(first);
    await watched.close(20);
    expect(notices).toHaveLength(2);
    expect(notices[0]).toBe('listener 1 is too slow: drmas drops events');
    expect(notices[1]).toMatch(/the run ends without it/);
  });

  it('are dropped when the run stops waiting, except the one in work; then the listener is closed', async () => {
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const handled: string[] = [];
    const event = ({ type }: RunEvent) => released.then(() => void handled.push(type));
    const { watched, notices } = guarded({ event, close: () => void handled.push('closed') });
    for (const each of events) watched.event(each);
    await watched.close(20);
    expect(notices[0]).toMatch(`the run ends without it, and ${events.length - 1} events are dropped`);
    watched.event(first);
    release();
    await new Promise((resolve) => setImmediate(resolve));
    expect(handled).toEqual([first.type, 'closed']);
  });
});

describe('the episodes of a guarded listener', () => {
  it('may make it throw anywhere: the team plays, once', () => {
    const { watched, notices } = guarded({
      round: fail,
      episode: () => ({ within: fail, answered: fail, ended: fail }),
    });
    watched.round(round);
    const seen = watched.episode(begun);
    let played = 0;
    expect(seen?.within?.(() => ++played)).toBe(1);
    seen?.answered?.({} as never, { start: 0, end: 1 });
    seen?.ended?.({} as never);
    expect(played).toBe(1);
    expect(notices).toEqual(['listener 1 failed, and the run continues: a broken processor']);
  });

  it('may fail to begin', () => {
    const { watched, notices } = guarded({ episode: fail });
    expect(watched.episode(begun)).toBeUndefined();
    expect(notices).toHaveLength(1);
  });

  it('do not tell it about errors of the team', () => {
    const { watched, notices } = guarded({ episode: () => ({ within: (run) => run(), answered: fail, ended: fail }) });
    const mine = new Error('mine');
    expect(() =>
      watched.episode(begun)?.within?.(() => {
        throw mine;
      }),
    ).toThrow(mine);
    expect(notices).toEqual([]);
  });
});
