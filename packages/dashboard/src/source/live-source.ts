import type { FeedMessage, FeedMessages, TalkMessage } from '../../../../src/runs/analysis.js';
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
  talk: {
    about: (run) => ask('talk', { run }),
    async ask(question, onMessage, signal) {
      const headers = { 'content-type': 'application/json' };
      const response = await fetch('api/talk', { method: 'POST', headers, body: JSON.stringify(question), signal });
      if (!response.ok || response.body === null) throw await refusal(response);
      for await (const line of linesOf(response.body)) onMessage(JSON.parse(line) as TalkMessage);
    },
    async release() {
      await fetch('api/talk', { method: 'DELETE' });
    },
  },
};

async function* linesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const lines = (rest + decoder.decode(part.value, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
}

/** @throws an error with the server's message */
async function ask<Answer>(what: string, query: Readonly<Record<string, string | number | null>>): Promise<Answer> {
  const words = Object.entries(query).flatMap(([name, value]) => (value === null ? [] : [[name, String(value)]]));
  const response = await fetch(`api/${what}?${new URLSearchParams(words)}`);
  if (response.ok) return (await response.json()) as Answer;
  throw await refusal(response);
}

async function refusal(response: Response): Promise<Error> {
  const { error } = (await response.json().catch(() => ({}))) as { error?: string };
  return new Error(error ?? `the server answered with ${response.status}`);
}
