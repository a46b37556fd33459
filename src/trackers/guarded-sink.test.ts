import { describe, expect, it } from 'vitest';
import { run as events } from '../../test/fixtures/run-events.js';
import type { RunEvent } from '../core/events.js';
import { GuardedSink } from './guarded-sink.js';

const [first] = events as [RunEvent, ...RunEvent[]];

describe('a sink behind its queue', () => {
  it('is told every event in order, as a copy, and closed at the end', async () => {
    const received: string[] = [];
    const sink = new GuardedSink(
      {
        event: async (event) => {
          await new Promise((resolve) => setImmediate(resolve));
          received.push(event.type);
          Object.assign(event, { type: 'changed' });
        },
        close: () => void received.push('closed'),
      },
      'sink 1',
      () => {},
    );
    for (const event of events) sink.write(event);
    expect(received).toEqual([]); // nothing of it runs inside the run
    await sink.close();
    expect(received).toEqual([...events.map(({ type }) => type), 'closed']);
  });

  it('may throw: that is said once, by its name', async () => {
    const notices: string[] = [];
    let closed = false;
    const sink = new GuardedSink(
      {
        name: 'my chat',
        event: ({ type }) => {
          if (type === 'step') throw new Error('no network');
        },
        close: () => {
          closed = true;
          throw new Error('still no network');
        },
      },
      'sink 1',
      (message) => notices.push(message),
    );
    for (const event of events) sink.write(event);
    await sink.close();
    expect(notices).toEqual(['my chat failed, and the run goes on: no network']);
    expect(closed).toBe(true);
  });

  it('may never answer: the queue ends, the run does not wait for long, and both are said once', async () => {
    const notices: string[] = [];
    const never = () => new Promise<void>(() => {});
    const sink = new GuardedSink({ event: never }, 'sink 1 of the program', (message) => notices.push(message));
    for (let i = 0; i < 10_500; i++) sink.write(first);
    await sink.close(20);
    expect(notices).toHaveLength(2);
    expect(notices[0]).toBe('sink 1 of the program is too slow: events are left out');
    expect(notices[1]).toMatch(/the run ends without it/);
  });
});
