import type { FeedMessage, FeedMessages } from '../../../src/report/analysis/feed.js';
import type { Source } from './source.js';

const TYPES: readonly (keyof FeedMessages)[] = ['list', 'run', 'events', 'files', 'failed'];

/** The server that served the page. A stream that breaks is opened again by the browser and begins anew. */
export const liveSource: Source = {
  live: true,
  follow(names, onMessage, onLink) {
    const query = names.map((name) => `run=${encodeURIComponent(name)}`).join('&');
    const stream = new EventSource(query === '' ? 'api/stream' : `api/stream?${query}`);
    for (const type of TYPES)
      stream.addEventListener(type, ({ data }: MessageEvent<string>) => {
        onMessage({ type, data: JSON.parse(data) } as FeedMessage);
      });
    stream.addEventListener('open', () => onLink(true));
    stream.addEventListener('error', () => onLink(false));
    return () => stream.close();
  },
  groups: (run, query, offset) => ask('groups', { run, ...query, offset }),
  group: (run, file, task) => ask('group', { run, file, task }),
  lacks: () => '',
  tokens: (run, place) => ask('tokens', { run, ...place }),
};

/** @throws an error with what the server says is wrong */
async function ask<Answer>(what: string, query: Readonly<Record<string, string | number | null>>): Promise<Answer> {
  const words = Object.entries(query).flatMap(([name, value]) => (value === null ? [] : [[name, String(value)]]));
  const response = await fetch(`api/${what}?${new URLSearchParams(words)}`);
  if (response.ok) return (await response.json()) as Answer;
  const { error } = (await response.json().catch(() => ({}))) as { error?: string };
  throw new Error(error ?? `the server answered with ${response.status}`);
}
