import type { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { stream } from 'hono/streaming';
import { z } from 'zod';
import { messageOf } from '../../core/errors.js';
import { type TalkMessage, talkRoles } from '../../report/analysis/talk-protocol.js';
import type { RunCatalog } from '../run-catalog.js';
import { BusyError, type TalkDesk } from './talk-desk.js';

/** The most bytes of a question, and the most tokens of an answer. */
const MOST_BYTES = 256e3;
const MOST_TOKENS = 8192;

const questionSchema = z.strictObject({
  run: z.string(),
  agent: z.string(),
  step: z.int().min(0).nullable().default(null),
  messages: z
    .array(z.strictObject({ role: z.enum(talkRoles), content: z.string() }))
    .min(1)
    .max(100),
  temperature: z.number().min(0).max(10).nullable().default(null),
  maxTokens: z.int().min(1).max(MOST_TOKENS).nullable().default(null),
  seed: z.int().min(0).default(0),
});

/** Talking to agents: who can be talked to, a question with its answers as lines of JSON, and the end of it. */
export function addTalkRoutes(app: Hono, catalog: RunCatalog, desk: TalkDesk): void {
  app.get('/api/talk', async (context) =>
    context.json(await desk.facts(catalog.placeOf(context.req.query('run') ?? ''))),
  );

  app.delete('/api/talk', async (context) => {
    await desk.release();
    return context.body(null, 204);
  });

  const tooLong = bodyLimit({
    maxSize: MOST_BYTES,
    onError: (context) => context.json({ error: `a question has at most ${MOST_BYTES} bytes` }, 413),
  });
  app.post('/api/talk', tooLong, async (context) => {
    // No form of another page can send this type without asking first.
    if (!/^application\/json\b/i.test(context.req.header('content-type') ?? ''))
      return context.json({ error: 'expected application/json' }, 415);
    const body: unknown = await context.req.json().catch(() => undefined);
    const question = questionSchema.parse(body);
    const gone = new AbortController();
    let answers: AsyncGenerator<TalkMessage, void>;
    try {
      answers = desk.ask(catalog.placeOf(question.run), question, gone.signal);
    } catch (error) {
      if (error instanceof BusyError) return context.json({ error: error.message }, 409);
      throw error;
    }
    context.header('content-type', 'application/x-ndjson');
    return stream(context, async (out) => {
      out.onAbort(() => gone.abort(new Error('the page has gone')));
      // Nobody waits for the page to read: answers are short, and the next question must not hang on it.
      const write = (message: TalkMessage) => void out.write(`${JSON.stringify(message)}\n`);
      try {
        for await (const message of answers) write(message);
      } catch (error) {
        if (!gone.signal.aborted) write({ type: 'failed', message: messageOf(error) });
      }
    });
  });
}
